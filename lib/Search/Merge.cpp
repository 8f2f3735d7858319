#include "Merge.h"

#include <algorithm>

using namespace windlass::search;

namespace {

constexpr size_t kMostSolutions = 16;

/// Returns the problem without the labels that none of the first `count` solutions has.
Problem restrict(Problem problem, const std::vector<Incumbent> &solutions, size_t count) {
  for (size_t i = 0; i < problem.nodes.size(); ++i) {
    std::vector<int64_t> costs(problem.nodes[i].costs.size(), kForbidden);
    for (size_t k = 0; k < count; ++k) {
      int32_t label = solutions[k].labels[i];
      costs[label] = problem.nodes[i].costs[label];
    }
    problem.nodes[i].costs = std::move(costs);
  }
  return problem;
}

} // namespace

void Pool::add(const Incumbent &found) {
  auto isKnown = [&](const Incumbent &one) { return one.cost == found.cost && one.labels == found.labels; };
  if (found.cost >= kForbidden || std::any_of(solutions.begin(), solutions.end(), isKnown))
    return;
  auto isDearer = [&](const Incumbent &one) { return one.cost > found.cost; };
  solutions.insert(std::find_if(solutions.begin(), solutions.end(), isDearer), found);
  if (solutions.size() > kMostSolutions)
    solutions.pop_back();
  isMerged = false;
}

std::optional<Shrunk> Pool::merge(const Problem &problem, size_t mostNodes) {
  if (isMerged)
    return std::nullopt;
  isMerged = true;
  for (size_t count = solutions.size(); count > 1; count = count == 2 ? 1 : (count + 1) / 2) {
    Shrunk shrunk = shrink(restrict(problem, solutions, count));
    if (shrunk.problem.nodes.size() <= mostNodes)
      return shrunk;
  }
  return std::nullopt;
}
