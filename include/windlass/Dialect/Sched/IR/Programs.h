// The programs of a module: one for each position.
#ifndef WINDLASS_DIALECT_SCHED_IR_PROGRAMS_H
#define WINDLASS_DIALECT_SCHED_IR_PROGRAMS_H

#include "windlass/Dialect/Sched/IR/SchedOps.h"

namespace windlass::sched {

/// Returns the programs of a module by position; none above level L4.
llvm::SmallVector<ProgramOp> getPrograms(mlir::ModuleOp module);

/// Returns the program of a module that has one position; reports an error where it has none or several.
mlir::FailureOr<ProgramOp> getOnlyProgram(mlir::ModuleOp module);

/// Returns the program around an operation; null outside of one.
ProgramOp getProgram(mlir::Operation *op);

} // namespace windlass::sched

#endif
