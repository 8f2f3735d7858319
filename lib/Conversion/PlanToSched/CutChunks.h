// The step of one position as the steps of the positions of a pipeline.
#ifndef WINDLASS_LIB_CONVERSION_PLANTOSCHED_CUTCHUNKS_H
#define WINDLASS_LIB_CONVERSION_PLANTOSCHED_CUTCHUNKS_H

#include "windlass/Dialect/Sched/IR/SchedOps.h"

namespace windlass::sched {

/// Replaces `whole`, the program of all of the model for one micro-batch after another, by a program for each position
/// of `pipeline`, whose schedule runs as many micro-batches. Operators of forward, backward and evaluation have the
/// labels `plan.chunk` and `plan.layouts`. Weights, their gradients and their state are on the position of the chunk
/// that makes the gradient. Fails where the schedule is none that programs can run, a chunk needs what a later one
/// makes, or a trained weight is read on two positions.
mlir::LogicalResult cutChunks(mlir::ModuleOp module, ProgramOp whole, plan::PipelineAttr pipeline);

} // namespace windlass::sched

#endif
