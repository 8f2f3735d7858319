// The claims about a plan that the search found: cost, bound, memory.
#ifndef WINDLASS_PIPELINE_CLAIMS_H
#define WINDLASS_PIPELINE_CLAIMS_H

#include "windlass/Dialect/Plan/PlanFile.h"
#include "windlass/Pipeline/MakeSchedule.h"
#include "windlass/Pipeline/PlanChoice.h"
#include "windlass/Pipeline/SearchSummary.h"
#include "windlass/Planner/ChoosePlan.h"

namespace windlass {

/// Sets in `search` the lower bound of the step over all of `meshes`, its certificates, and the shadow price of memory
/// on the mesh `chosen` of the plan, whose steps and stages it has. Sets no bound where `meshes` lack the plan's, or no
/// plan is admitted. `threads` certify in parallel.
void certify(const std::vector<planner::SearchedMesh> &meshes, plan::MeshAttr chosen, int threads,
             SearchSummary &search);

/// Returns the claims about `plan`, which has none yet.
plan::PlanClaims makeClaims(const SearchSummary &search, const Schedule &schedule, const plan::PlanFile &plan,
                            const PlanChoice &choice);

/// Returns what plans a bound is of, by their numbers of stages: "of 1 stage", or "of 1, 2 or 4 stages, cut and
/// scheduled as the search does".
std::string describeBoundStages(llvm::ArrayRef<int64_t> stages);

/// The compiled plan that claims are about.
struct ClaimedPlan {
  /// The module at L3 or L3b, and at L2.
  mlir::ModuleOp planned, unplanned;
  const Schedule &schedule;
  /// The precision in which the program computes.
  std::string precision;
  std::vector<std::string> pins;
};

/// Recomputes the claims about a plan, the bound from the text of its certificates. Fails at the first claim that does
/// not hold.
mlir::LogicalResult verifyClaims(const plan::PlanClaims &claims, const ClaimedPlan &plan, llvm::StringRef certificate,
                                 const PlanChoice &choice);

/// Returns the hash that the claims of a plan carry if they were made for its present content, in the cost model of
/// this windlass.
std::string hashOfPlan(const plan::PlanFile &plan);

/// Returns the path of the certificates: plan.cert next to plan.json.
std::string getCertificatePath(llvm::StringRef planPath);

} // namespace windlass

#endif
