// Passes of the library Autodiff.
#ifndef WINDLASS_AUTODIFF_PASSES_H
#define WINDLASS_AUTODIFF_PASSES_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"
#include "windlass/Dialect/Train/IR/TrainOps.h"

namespace windlass::train {

#define GEN_PASS_DECL
#include "windlass/Autodiff/Passes.h.inc"

#define GEN_PASS_REGISTRATION
#include "windlass/Autodiff/Passes.h.inc"

} // namespace windlass::train

#endif
