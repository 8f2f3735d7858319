// --strategy auto for pipelines: the search of a plan for each number of stages.
#ifndef WINDLASS_LIB_PIPELINE_SEARCHSTAGES_H
#define WINDLASS_LIB_PIPELINE_SEARCHSTAGES_H

#include "SearchPlan.h"

namespace windlass {

/// Searches a plan (`searchPlan`) for the pipeline of `choice`, or with `searchesStages` for each number of stages that
/// divides the devices, from one to `kMostSearchedStages`, and takes the one whose simulated step is the shortest.
/// Bounds the steps of the plans of all numbers of stages that were tried. The module is at L2 and not cut. With a
/// finite `mustBeat`, in seconds, plans that are likely to be no shorter are not scheduled, and where no other is found
/// there is neither a plan nor an error.
mlir::FailureOr<FoundPlan> searchStages(mlir::ModuleOp module, const PlanChoice &choice, llvm::StringRef precision,
                                        llvm::function_ref<mlir::LogicalResult(planner::PlanSearch &)> begin,
                                        double mustBeat);

/// The most stages that are searched where their number is not given.
constexpr int64_t kMostSearchedStages = 16;

} // namespace windlass

#endif
