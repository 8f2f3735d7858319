// One runner per form of a step.
#ifndef WINDLASS_LIB_INTERPRETER_RUNNERS_H
#define WINDLASS_LIB_INTERPRETER_RUNNERS_H

#include "RunInputs.h"

#include "windlass/Dialect/Sched/IR/SchedOps.h"

namespace windlass::interpreter {

/// L1: the losses of `@loss`; parameters stay, or are those of the trajectory.
mlir::FailureOr<RunResult> runLoss(mlir::ModuleOp module, const RunInputs &inputs);
/// L2 and L3: `@init`, `@microbatch`, `@update`; L2 is a mesh of one rank.
mlir::FailureOr<RunResult> runFunctions(mlir::ModuleOp module, const RunInputs &inputs);
/// L4: tensors in resources, collectives, messages between positions.
mlir::FailureOr<RunResult> runResources(mlir::ModuleOp module, const RunInputs &inputs);
/// L5: buffers in arenas, streams and events.
mlir::FailureOr<RunResult> runCommands(mlir::ModuleOp module, const RunInputs &inputs);

} // namespace windlass::interpreter

#endif
