// --strategy auto: the search, and what its plans take when they are scheduled.
#ifndef WINDLASS_LIB_PIPELINE_SEARCHPLAN_H
#define WINDLASS_LIB_PIPELINE_SEARCHPLAN_H

#include "windlass/Pipeline/MakeSchedule.h"
#include "windlass/Pipeline/PlanChoice.h"
#include "windlass/Pipeline/SearchSummary.h"
#include "windlass/Planner/ChoosePlan.h"

namespace windlass {

/// L2 to L3 by the plan that a search finds, with its schedule, verified if it is for a program, and what the search
/// says of it. `begin`, where it is given, shows the search an older plan before it starts. `precision` is that of the
/// program. Fails where nothing is found that fits, with what would.
mlir::LogicalResult searchPlan(mlir::ModuleOp module, const PlanChoice &choice, llvm::StringRef precision,
                               Purpose purpose, llvm::function_ref<mlir::LogicalResult(planner::PlanSearch &)> begin,
                               Schedule &schedule, SearchSummary &summary);

} // namespace windlass

#endif
