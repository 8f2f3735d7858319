// Collectives that combine values of all positions.
#ifndef WINDLASS_DIALECT_SCHED_IR_POSITIONCOLLECTIVES_H
#define WINDLASS_DIALECT_SCHED_IR_POSITIONCOLLECTIVES_H

#include "windlass/Dialect/Sched/IR/SchedOps.h"
#include "windlass/Schedule/Pipeline.h"

namespace windlass::sched {

/// Whether an operation of L4 or a command of L5 combines values of all positions.
bool spansPositions(mlir::Operation *op);

/// Checks that the collectives over positions of all programs meet in `step`, which is legal otherwise: they are in
/// updates, behind all messages, of the same kinds and types in one order, on meshes of one shape. Reports an error
/// where they do not.
mlir::LogicalResult checkPositionCollectives(mlir::ModuleOp module, const schedule::Pipeline &step);

} // namespace windlass::sched

#endif
