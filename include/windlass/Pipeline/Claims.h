// What is claimed of a plan that the search found: cost, bound, memory.
#ifndef WINDLASS_PIPELINE_CLAIMS_H
#define WINDLASS_PIPELINE_CLAIMS_H

#include "windlass/Dialect/Plan/PlanFile.h"
#include "windlass/Pipeline/MakeSchedule.h"
#include "windlass/Pipeline/PlanChoice.h"
#include "windlass/Pipeline/SearchSummary.h"
#include "windlass/Planner/ChoosePlan.h"

namespace windlass {

/// Sets the bound, its certificates and what more memory is worth, for the cost of a plan on one of the meshes.
void certify(const std::vector<planner::SearchedMesh> &meshes, const plan::StrategyChoice &chosen, int threads,
             SearchSummary &search);

/// Of a plan that has none yet.
plan::PlanClaims makeClaims(const SearchSummary &search, const Schedule &schedule, const plan::PlanFile &plan,
                            const PlanChoice &choice);

/// What a plan claims something of.
struct ClaimedPlan {
  /// At L3 or L3b, and at L2.
  mlir::ModuleOp planned, unplanned;
  const Schedule &schedule;
  /// The precision in which the program computes.
  std::string precision;
  std::vector<std::string> pins;
};

/// Computes anew what is claimed of a plan, the bound from the text of its certificates. Fails at the first claim that
/// does not hold.
mlir::LogicalResult verifyClaims(const plan::PlanClaims &claims, const ClaimedPlan &plan, llvm::StringRef certificate,
                                 const PlanChoice &choice);

/// What the claims of a plan bear, where they are of what it says now, and made in the model of this windlass.
std::string hashOfPlan(const plan::PlanFile &plan);

/// plan.cert beside plan.json.
std::string getCertificatePath(llvm::StringRef planPath);

} // namespace windlass

#endif
