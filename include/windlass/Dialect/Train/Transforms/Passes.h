// Passes on the `train` dialect.
#ifndef WINDLASS_DIALECT_TRAIN_TRANSFORMS_PASSES_H
#define WINDLASS_DIALECT_TRAIN_TRANSFORMS_PASSES_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"
#include "windlass/Dialect/Plan/IR/PlanOps.h"

namespace windlass::train {

#define GEN_PASS_DECL
#include "windlass/Dialect/Train/Transforms/Passes.h.inc"

#define GEN_PASS_REGISTRATION
#include "windlass/Dialect/Train/Transforms/Passes.h.inc"

} // namespace windlass::train

#endif
