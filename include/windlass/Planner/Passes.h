// Passes of the library Planner.
#ifndef WINDLASS_PLANNER_PASSES_H
#define WINDLASS_PLANNER_PASSES_H

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"
#include "windlass/Dialect/Plan/IR/PlanOps.h"

namespace windlass::planner {

#define GEN_PASS_DECL
#include "windlass/Planner/Passes.h.inc"

#define GEN_PASS_REGISTRATION
#include "windlass/Planner/Passes.h.inc"

} // namespace windlass::planner

#endif
