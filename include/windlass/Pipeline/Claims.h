// What is claimed of a plan that the search found: cost, bound, memory.
#ifndef WINDLASS_PIPELINE_CLAIMS_H
#define WINDLASS_PIPELINE_CLAIMS_H

#include "windlass/Pipeline/Compile.h"
#include "windlass/Planner/ChoosePlan.h"

namespace windlass {

/// Sets the bound, its certificates and what more memory is worth, for the cost of a plan on one of the meshes.
void certify(const std::vector<planner::SearchedMesh> &meshes, const plan::StrategyChoice &chosen, int threads,
             SearchSummary &search);

/// Of a plan that has none yet.
plan::PlanClaims makeClaims(const SearchSummary &search, const Schedule &schedule, const plan::PlanFile &plan,
                            const PlanChoice &choice);

/// What the claims of a plan bear, where they are of what it says now, and made in the model of this windlass.
std::string hashOfPlan(const plan::PlanFile &plan);

/// plan.cert beside plan.json.
std::string getCertificatePath(llvm::StringRef planPath);

} // namespace windlass

#endif
