// The actions of `sched.schedule` as plain C++ objects.
#ifndef WINDLASS_DIALECT_SCHED_IR_SCHEDULES_H
#define WINDLASS_DIALECT_SCHED_IR_SCHEDULES_H

#include "windlass/Dialect/Sched/IR/SchedOps.h"
#include "windlass/Schedule/Pipeline.h"

namespace windlass::sched {

/// Returns the table of a schedule. Fails where the table is malformed, which cannot be in a verified schedule.
llvm::Expected<schedule::ActionTable> getActionTable(ScheduleOp op);

/// Builds a schedule at the insertion point.
ScheduleOp createSchedule(mlir::OpBuilder &builder, mlir::Location location, const schedule::ActionTable &table);

/// Lists the actions of a program without a check of their order; the schedules of other positions do not matter.
/// Reports an error where the table is too long, or has actions that no program runs.
mlir::FailureOr<schedule::Schedule> expandSchedule(ScheduleOp op);

/// Whether a rank of the program has a single micro-batch in a step. Reports an error where `expandSchedule` does.
mlir::FailureOr<bool> hasOneMicroBatch(ProgramOp program);

/// Lists the actions of all programs of a module without a check of their order; the module has passed `checkPrograms`.
/// Reports an error where a program has no schedule, and where `expandSchedule` reports one.
mlir::FailureOr<schedule::Pipeline> expandSteps(mlir::ModuleOp module);

/// Checks that the steps of all programs together are legal for ranks that block in sends and receives
/// (`checkPipeline`), and that their collectives over positions meet; reports an error where they are not.
mlir::LogicalResult checkSteps(mlir::ModuleOp module);

/// Checks that each chunk of a program at L5 has a slot for each micro-batch in flight: one, where the program has no
/// slots of the chunk. Reports an error where it has not, and where `expandSchedule` reports one.
mlir::LogicalResult checkSlots(ScheduleOp op);

/// Whether a command of L5 runs when its function is called for the last micro-batch of a step (`isLast`), or for
/// another.
bool runsIn(mlir::Operation *command, bool isLast);

} // namespace windlass::sched

#endif
