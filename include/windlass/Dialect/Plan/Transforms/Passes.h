// Passes of level L3.
#ifndef WINDLASS_DIALECT_PLAN_TRANSFORMS_PASSES_H
#define WINDLASS_DIALECT_PLAN_TRANSFORMS_PASSES_H

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"
#include "windlass/Dialect/Plan/IR/PlanOps.h"

namespace windlass::plan {

#define GEN_PASS_DECL
#include "windlass/Dialect/Plan/Transforms/Passes.h.inc"

#define GEN_PASS_REGISTRATION
#include "windlass/Dialect/Plan/Transforms/Passes.h.inc"

} // namespace windlass::plan

#endif
