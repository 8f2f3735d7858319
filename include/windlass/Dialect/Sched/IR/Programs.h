// The programs of a module: one for each position.
#ifndef WINDLASS_DIALECT_SCHED_IR_PROGRAMS_H
#define WINDLASS_DIALECT_SCHED_IR_PROGRAMS_H

#include "windlass/Dialect/Sched/IR/SchedOps.h"
#include "windlass/Schedule/Placement.h"

namespace windlass::sched {

/// Returns the programs of a module by position; empty above level L4.
llvm::SmallVector<ProgramOp> getPrograms(mlir::ModuleOp module);

/// Returns the program of a module that has one position; reports an error where it has none or several.
mlir::FailureOr<ProgramOp> getOnlyProgram(mlir::ModuleOp module);

/// Returns which position runs which chunk: the module's `sched.placement`, or one position with one chunk without it.
schedule::Placement getPlacement(mlir::ModuleOp module);

/// Checks that the placement is valid, and that the programs are those of its positions, in their order; reports an
/// error where they are not.
mlir::LogicalResult checkPrograms(mlir::ModuleOp module);

/// Returns the resources that a chunk sends to, or receives from, its neighbour `peer` on another position, in the
/// order in which both sides declare them.
llvm::SmallVector<ResourceOp> getBorder(ProgramOp program, ResourceKind kind, int64_t chunk, int64_t peer);

/// Returns the program around an operation; null outside of one.
ProgramOp getProgram(mlir::Operation *op);

} // namespace windlass::sched

#endif
