// The step of one position as the steps of the positions of a pipeline.
#ifndef WINDLASS_LIB_CONVERSION_PLANTOSCHED_CUTCHUNKS_H
#define WINDLASS_LIB_CONVERSION_PLANTOSCHED_CUTCHUNKS_H

#include "windlass/Dialect/Sched/IR/SchedOps.h"

namespace windlass::sched {

/// Replaces `whole`, a program that runs all of the model, by a program for each position of `pipeline`; the number of
/// micro-batches stays the same. The operators of forward, backward and evaluation must be labelled with `plan.chunk`
/// and `plan.layouts`. Weights, their gradients and their state are on the position of the chunk
/// that makes the gradient. Fails where programs cannot run the schedule, a chunk needs what a later one makes,
/// or a trained weight is read on two positions.
mlir::LogicalResult cutChunks(mlir::ModuleOp module, ProgramOp whole, plan::PipelineAttr pipeline);

} // namespace windlass::sched

#endif
