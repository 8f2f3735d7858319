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

/// Lists the actions of a program, whatever their order: what other positions do changes nothing about them. Reports an
/// error where the table is too long, or has actions that no program runs.
mlir::FailureOr<schedule::Schedule> expandSchedule(ScheduleOp op);

/// Lists the actions of all programs of a module, whatever their order; the module has passed `checkPrograms`. Reports
/// an error where a program has no schedule, and where `expandSchedule` does.
mlir::FailureOr<schedule::Pipeline> expandSteps(mlir::ModuleOp module);

/// Checks that the steps of all programs together are legal for ranks that block in sends and receives
/// (`checkPipeline`); reports an error where they are not.
mlir::LogicalResult checkSteps(mlir::ModuleOp module);

/// Checks that no chunk has two micro-batches in flight: commands have one slot for inputs and stash. Reports an error
/// where one has, and where `expandSchedule` does.
mlir::LogicalResult checkSlots(ScheduleOp op);

/// Whether a command of L5 runs where its function is called for a micro-batch that is the last of the step, or not.
bool runsIn(mlir::Operation *command, bool isLast);

} // namespace windlass::sched

#endif
