// The programs of a module: one for each position.
#ifndef WINDLASS_DIALECT_SCHED_IR_PROGRAMS_H
#define WINDLASS_DIALECT_SCHED_IR_PROGRAMS_H

#include "windlass/Dialect/Sched/IR/SchedOps.h"
#include "windlass/Schedule/Placement.h"

namespace windlass::sched {

/// Returns the programs of a module by position; none above level L4.
llvm::SmallVector<ProgramOp> getPrograms(mlir::ModuleOp module);

/// Returns the program of a module that has one position; reports an error where it has none or several.
mlir::FailureOr<ProgramOp> getOnlyProgram(mlir::ModuleOp module);

/// Returns which position runs which chunk: what the module says, or one of each.
schedule::Placement getPlacement(mlir::ModuleOp module);

/// Checks that the placement is one, and that the programs are those of its positions, in their order; reports an error
/// where it is not.
mlir::LogicalResult checkPrograms(mlir::ModuleOp module);

/// Returns what a chunk sends to, or has received from, its neighbour `peer` on another position, in the order in which
/// both sides list it.
llvm::SmallVector<ResourceOp> getBorder(ProgramOp program, ResourceKind kind, int64_t chunk, int64_t peer);

/// Returns the program around an operation; null outside of one.
ProgramOp getProgram(mlir::Operation *op);

} // namespace windlass::sched

#endif
