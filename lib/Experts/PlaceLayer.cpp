#include "PlaceLayer.h"

#include <limits>

using namespace windlass;
using namespace windlass::experts;

/// What is so near to the bound is not searched further.
static constexpr double kNearPart = 1e-5;

/// Solves the nodes of a partition, the one with the highest bound first; the others need not be better than the worst
/// so far. Returns the largest load, or one that is no better than `best` where the rest was not looked at.
static double solvePartition(Domains &domains, const Partition &partition, double best) {
  std::vector<std::pair<double, size_t>> order;
  for (size_t node = 0; node < partition.size(); ++node)
    order.push_back({-domains.getBound(partition[node]), node});
  std::sort(order.begin(), order.end());
  double largest = 0;
  for (auto [bound, node] : order) {
    largest = std::max(largest, domains.solve(partition[node], largest).load);
    if (largest >= best)
      break;
  }
  return largest;
}

Placement windlass::experts::joinNodes(const Domains &domains, const Partition &partition,
                                       const std::vector<Placement> &nodes) {
  Placement placement;
  for (size_t node = 0; node < partition.size(); ++node)
    for (int32_t expert : nodes[node])
      placement.push_back(domains.getExpert(partition[node], expert));
  return placement;
}

void windlass::experts::finish(const FlatProblem &whole, LayerAnswer &answer) {
  answer.load = computeLargestLoad(whole, answer.placement);
  if (!isBelow(answer.bound, answer.load))
    answer.bound = answer.load;
}

LayerAnswer windlass::experts::placeFlat(const FlatProblem &problem, SearchLimits &limits) {
  FlatAnswer flat = solveFlat(problem, 0, limits);
  return {std::move(flat.placement), flat.load, flat.bound};
}

LayerAnswer windlass::experts::placeGroups(Domains &domains, const FlatProblem &whole) {
  PartitionList list = listPartitions(domains);
  // A partition is of interest while its bound is below the best load.
  double best = std::numeric_limits<double>::infinity();
  const Partition *chosen = nullptr;
  for (const Partition &partition : list.partitions) {
    if (!isBelow(domains.getBound(partition), best))
      continue;
    if (double load = solvePartition(domains, partition, best); load < best) {
      best = load;
      chosen = &partition;
    }
  }
  LayerAnswer answer;
  answer.bound = list.boundOfOthers;
  for (const Partition &partition : list.partitions)
    answer.bound = std::min(answer.bound, domains.getBound(partition));
  answer.bound = std::max(answer.bound, computeBound(whole));
  std::vector<Placement> nodes;
  for (const GroupSet &groups : *chosen)
    nodes.push_back(domains.solve(groups, best).placement);
  answer.placement = joinNodes(domains, *chosen, nodes);
  finish(whole, answer);
  return answer;
}

PlaceLimits windlass::experts::shareLimits(int64_t layers) {
  constexpr int64_t kFullLayers = 100;
  PlaceLimits limits;
  for (int64_t *steps : {&limits.exploreSteps, &limits.exactSteps, &limits.repairSteps})
    *steps = *steps * kFullLayers / std::max(layers, kFullLayers);
  return limits;
}

LayerAnswer windlass::experts::placeLayer(const Shape &shape, const std::vector<double> &loads,
                                          const PlaceLimits &limits) {
  SearchLimits search{WorkBudget(limits.exploreSteps), WorkBudget(limits.exactSteps), kNearPart};
  FlatProblem whole{loads, shape.gpus, shape.getSlots()};
  if (shape.getDomains() == 1)
    return placeFlat(whole, search);
  Domains domains(shape, loads, search);
  return placeGroups(domains, whole);
}
