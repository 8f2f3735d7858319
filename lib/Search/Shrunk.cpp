#include "windlass/Search/Shrunk.h"

#include <algorithm>

using namespace windlass::search;

Solution Shrunk::expand(const Solution &solution) const {
  Solution labels(originalNodes, 0);
  for (size_t i = 0; i < nodes.size(); ++i)
    labels[nodes[i]] = solution[i];
  for (size_t s = steps.size(); s-- > 0;) {
    const ShrinkStep &step = steps[s];
    int32_t first = step.first < 0 ? 0 : labels[step.first], second = step.second < 0 ? 0 : labels[step.second];
    labels[step.node] = step.map[static_cast<size_t>(first) * step.width + second];
  }
  return labels;
}

Solution Shrunk::contract(const Solution &solution) const {
  Solution labels = solution;
  for (const ShrinkStep &step : steps)
    if (step.node == step.first) {
      auto kept = std::find(step.map.begin(), step.map.end(), labels[step.node]);
      labels[step.node] = kept == step.map.end() ? 0 : static_cast<int32_t>(kept - step.map.begin());
    }
  Solution left;
  for (int32_t node : nodes)
    left.push_back(labels[node]);
  return left;
}
