// --strategy auto: the search, and the memory that its plans need when they are scheduled.
#ifndef WINDLASS_LIB_PIPELINE_SEARCHPLAN_H
#define WINDLASS_LIB_PIPELINE_SEARCHPLAN_H

#include "windlass/Pipeline/MakeSchedule.h"
#include "windlass/Pipeline/PlanChoice.h"
#include "windlass/Pipeline/SearchSummary.h"
#include "windlass/Planner/ChoosePlan.h"

namespace windlass {

/// A plan that a search found.
struct FoundPlan {
  /// A copy of the searched module at L3.
  mlir::OwningOpRef<mlir::ModuleOp> planned;
  Schedule schedule;
  SearchSummary summary;
};

/// Searches a plan for a copy of a module at L2 and schedules it, verified where `purpose` is a program. `begin`, where
/// it is given, shows the search an older plan before it starts. `precision` is the program's. Fails where no plan is
/// found that fits, with an error that says what would.
mlir::FailureOr<FoundPlan> searchPlan(mlir::ModuleOp module, const PlanChoice &choice, llvm::StringRef precision,
                                      Purpose purpose,
                                      llvm::function_ref<mlir::LogicalResult(planner::PlanSearch &)> begin);

} // namespace windlass

#endif
