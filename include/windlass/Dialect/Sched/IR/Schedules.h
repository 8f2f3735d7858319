// The actions of `sched.schedule` as plain C++ objects.
#ifndef WINDLASS_DIALECT_SCHED_IR_SCHEDULES_H
#define WINDLASS_DIALECT_SCHED_IR_SCHEDULES_H

#include "windlass/Dialect/Sched/IR/SchedOps.h"
#include "windlass/Schedule/Schedule.h"

namespace windlass::sched {

/// The levels that hold a schedule.
enum class StepLevel {
  Async,   ///< L4: the reduction is an action of its own
  Commands ///< L5: the last backward and the reduction are one action
};

/// Reads the table; reports an error where it is malformed.
mlir::FailureOr<schedule::ActionTable> getActionTable(ScheduleOp op);

/// Replaces the actions of `op` by those of `table`.
void setActionTable(ScheduleOp op, const schedule::ActionTable &table);

/// Builds a schedule at the insertion point.
ScheduleOp createSchedule(mlir::OpBuilder &builder, mlir::Location location, const schedule::ActionTable &table);

/// Lists the actions, whatever their order. Reports an error where the table is malformed or too long, or needs more
/// than the functions of a module have: one chunk, and one slot for its stash.
mlir::FailureOr<schedule::Schedule> expandSchedule(ScheduleOp op);

/// The same, and an error too where the order is not legal or an action belongs to the other level.
mlir::FailureOr<schedule::Schedule> expandStep(ScheduleOp op, StepLevel level);

/// The function that the actions of a kind run.
llvm::StringRef getFunctionName(schedule::ActionKind kind);

} // namespace windlass::sched

#endif
