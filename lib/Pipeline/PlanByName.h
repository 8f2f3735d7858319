// Plans by named strategies.
#ifndef WINDLASS_LIB_PIPELINE_PLANBYNAME_H
#define WINDLASS_LIB_PIPELINE_PLANBYNAME_H

#include "windlass/Pipeline/PlanChoice.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"

namespace windlass {

/// Returns the pass from L2 to L3 under the named strategy and pins of `choice`.
std::unique_ptr<mlir::Pass> createStrategyPass(const PlanChoice &choice);

/// Takes a module from L2 to L3 under the named strategy and pins of `choice`. A strategy that decides what the host
/// holds labels the parameters, for which it may measure the memory of another plan first.
mlir::LogicalResult planByName(mlir::ModuleOp module, const PlanChoice &choice);

} // namespace windlass

#endif
