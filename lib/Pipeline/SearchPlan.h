// --strategy auto: the search, and the memory that its plans need when they are scheduled.
#ifndef WINDLASS_LIB_PIPELINE_SEARCHPLAN_H
#define WINDLASS_LIB_PIPELINE_SEARCHPLAN_H

#include "windlass/Pipeline/MakeSchedule.h"
#include "windlass/Pipeline/PlanChoice.h"
#include "windlass/Pipeline/SearchSummary.h"
#include "windlass/Planner/ChoosePlan.h"

#include <functional>

namespace windlass {

/// A plan that a search found.
struct FoundPlan {
  /// A copy of the searched module at L3; null where none was found that is worth a trial and fits.
  mlir::OwningOpRef<mlir::ModuleOp> planned;
  /// Where `planned` is null and nothing had to be beaten: reports the error that says what would fit, and fails. The
  /// searched module must still be there.
  std::function<mlir::LogicalResult()> refuse;
  Schedule schedule;
  SearchSummary summary;
  /// The plan's mesh, and the problems of all meshes with as many stages. Their bound says nothing of a plan that the
  /// model's rows of memory do not admit, so that there are no problems then.
  plan::MeshAttr mesh;
  std::vector<planner::SearchedMesh> bounded;
};

/// Searches a plan for a copy of a module at L2 and schedules it, as a trial. `begin`, where it is given, shows the
/// search an older plan before it starts. `precision` is the program's. The summary has no bound yet: `certify` sets
/// it.
///
/// A module that is cut into a pipeline is searched as one model on the ranks of a position, as if its chunks were
/// alike: each position holds an even part of the parameters and their state, and of each micro-batch in flight what
/// its part leaves for the backward pass. What a position needs indeed shows when a plan is scheduled; then less memory
/// is tried. Plans that are likely to be no shorter than `mustBeat` seconds are not scheduled; where this is finite, a
/// search that finds none says no reason.
mlir::FailureOr<FoundPlan> searchPlan(mlir::ModuleOp module, const PlanChoice &choice, llvm::StringRef precision,
                                      llvm::function_ref<mlir::LogicalResult(planner::PlanSearch &)> begin,
                                      double mustBeat);

} // namespace windlass

#endif
