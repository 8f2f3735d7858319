// The functions of a step, found by what they are: a role and a chunk.
#ifndef WINDLASS_DIALECT_SCHED_IR_STEPFUNCTIONS_H
#define WINDLASS_DIALECT_SCHED_IR_STEPFUNCTIONS_H

#include "windlass/Dialect/Sched/IR/SchedOps.h"

namespace windlass::sched {

/// Function: StepAttr, its role in the step and its chunk.
constexpr char kStepAttr[] = "sched.step";

/// Returns the role and chunk of a function; null where it is no function of a step.
StepAttr getStep(mlir::func::FuncOp function);

/// Whether the function has the role, for any chunk.
bool hasRole(mlir::func::FuncOp function, StepRole role);

/// Returns the function of a role and chunk of a program; null where there is none.
mlir::func::FuncOp getStepFunction(ProgramOp program, StepRole role, int64_t chunk = 0);

/// Returns whether functions of the role run the backward of a micro-batch, or a part of it.
bool isOfBackward(StepRole role);

/// Returns the function that ends the backward of a chunk: its weight_gradient, or else its backward, which may be
/// null.
mlir::func::FuncOp getLastBackward(ProgramOp program, int64_t chunk);

/// Returns the functions of a step of a program, by chunk, then in the order of StepRole.
llvm::SmallVector<mlir::func::FuncOp> getStepFunctions(ProgramOp program);

/// Returns the chunks whose functions are in a program, in increasing order.
llvm::SmallVector<int64_t> getChunks(ProgramOp program);

/// Checks that no two functions in `program` have one role and chunk; reports an error at the second.
mlir::LogicalResult checkStepFunctions(ProgramOp program);

/// Returns the role of the function that actions of a kind run; none for transfers.
std::optional<StepRole> getRole(schedule::ActionKind kind);

/// Checks that the program has the function that each of the schedule's actions runs; reports an error at the schedule.
/// The order of the actions is checked for all positions together (`checkSteps`).
mlir::LogicalResult checkActions(ScheduleOp schedule);

/// Returns the symbol of a function of a step, which is also its name in the emitted program: `forward`, or `forward_1`
/// for chunk 1.
std::string getFunctionName(StepAttr step);

/// Returns the roles of a step's functions, in the order of their enumeration.
llvm::ArrayRef<StepRole> getStepRoles();

} // namespace windlass::sched

#endif
