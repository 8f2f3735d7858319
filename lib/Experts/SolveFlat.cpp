#include "SolveFlat.h"

#include "ExactSearch.h"
#include "LocalSearch.h"

using namespace windlass::experts;

/// The steps of local search for each slot.
static constexpr int64_t kExploreSteps = 20'000;
/// The most slots of a problem that is tried to the end.
static constexpr int32_t kMostExactReplicas = 32;

FlatAnswer windlass::experts::solveFlat(const FlatProblem &problem, double enough, SearchLimits &limits) {
  FlatAnswer answer;
  answer.bound = computeBound(problem);
  double near = answer.bound * (1 + limits.nearPart);
  // The descent goes as far as it can: where `enough` comes of another node, this one is better off with less.
  int64_t share = std::min(limits.explore.getLeft(), kExploreSteps * problem.getReplicas());
  WorkBudget own(share);
  LocalSearch search(problem, packLargestFirst(problem, chooseCounts(problem)), own);
  search.descend(near);
  search.explore(std::max(enough, near));
  limits.explore.spend(share - own.getLeft());
  answer.placement = search.getPlacement();
  answer.load = computeLargestLoad(problem, answer.placement);
  // Few replicas are tried to the end.
  if (answer.load > std::max(enough, near) && problem.getReplicas() <= kMostExactReplicas) {
    ExactSearch search(problem, answer.placement, answer.bound, limits.exact);
    bool isComplete = search.run();
    answer.placement = search.getPlacement();
    answer.load = computeLargestLoad(problem, answer.placement);
    if (isComplete)
      answer.bound = answer.load;
  }
  if (!isBelow(answer.bound, answer.load))
    answer.bound = answer.load;
  return answer;
}
