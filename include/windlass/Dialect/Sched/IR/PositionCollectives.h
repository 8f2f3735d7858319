// Collectives that combine values of several positions.
#ifndef WINDLASS_DIALECT_SCHED_IR_POSITIONCOLLECTIVES_H
#define WINDLASS_DIALECT_SCHED_IR_POSITIONCOLLECTIVES_H

#include "windlass/Dialect/Sched/IR/SchedOps.h"
#include "windlass/Schedule/Pipeline.h"

namespace windlass::sched {

/// Returns the positions whose values an operation of L4 or a command of L5 combines; null where it combines none, or
/// only those of its own.
mlir::DenseI64ArrayAttr getSpannedPositions(mlir::Operation *op);
bool spansPositions(mlir::Operation *op);

/// Checks that the collectives over positions of all programs meet in `step`, which is legal otherwise: they are in
/// reductions and updates, behind all messages, each of the same kind and types in its positions, whose meshes have one
/// shape, and no positions wait for each other. Reports an error where they do not.
mlir::LogicalResult checkPositionCollectives(mlir::ModuleOp module, const schedule::Pipeline &step);

} // namespace windlass::sched

#endif
