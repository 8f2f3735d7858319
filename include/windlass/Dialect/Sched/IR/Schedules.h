// The actions of `sched.schedule` as plain C++ objects.
#ifndef WINDLASS_DIALECT_SCHED_IR_SCHEDULES_H
#define WINDLASS_DIALECT_SCHED_IR_SCHEDULES_H

#include "windlass/Dialect/Sched/IR/SchedOps.h"
#include "windlass/Schedule/Pipeline.h"

namespace windlass::sched {

/// Reads the table. Fails where it is malformed, which that of a verified schedule is not.
llvm::Expected<schedule::ActionTable> getActionTable(ScheduleOp op);

/// Builds a schedule at the insertion point.
ScheduleOp createSchedule(mlir::OpBuilder &builder, mlir::Location location, const schedule::ActionTable &table);

/// Lists the actions of the only position, whatever their order. Reports an error where the table is too long, or needs
/// more than the functions of a program have: actions that one of them runs, one chunk, and one slot for its stash.
mlir::FailureOr<schedule::Schedule> expandSchedule(ScheduleOp op);

/// The same, and an error too where the order is not legal.
mlir::FailureOr<schedule::Schedule> expandStep(ScheduleOp op);

/// Whether a command of L5 runs where its function is called for a micro-batch that is the last of the step, or not.
bool runsIn(mlir::Operation *command, bool isLast);

} // namespace windlass::sched

#endif
