// The step that a plan's pipeline runs.
#ifndef WINDLASS_DIALECT_PLAN_TRANSFORMS_PIPELINESTEP_H
#define WINDLASS_DIALECT_PLAN_TRANSFORMS_PIPELINESTEP_H

#include "windlass/Dialect/Plan/IR/PlanOps.h"
#include "windlass/Schedule/Pipeline.h"

namespace windlass::plan {

/// The word for a pipeline's schedule that has no published name.
constexpr char kOwnSchedule[] = "own";

/// Returns the step for `microBatches` micro-batches of each rank: that of the published schedule, or the plan's own
/// orders. Fails with what does not fit: an unknown name, orders that are not legal, or a number of chunks or of
/// micro-batches that the schedule is not for.
llvm::Expected<schedule::Pipeline> makeStep(PipelineAttr pipeline, int64_t microBatches);

/// Reads the orders of a plan's own schedule. Fails where they are not legal, or not of the pipeline's chunks and
/// positions.
llvm::Expected<schedule::Pipeline> readOrders(PipelineAttr pipeline);

/// Returns the orders of a plan whose own schedule this is.
llvm::SmallVector<mlir::StringAttr> printOrders(mlir::MLIRContext *context, const schedule::Pipeline &step);

} // namespace windlass::plan

#endif
