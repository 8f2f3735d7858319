#include "windlass/Experts/Placement.h"

#include "llvm/Support/FormatVariadic.h"

#include <algorithm>

using namespace windlass::experts;
using llvm::formatv;

std::string windlass::experts::checkShape(const Shape &shape) {
  struct Range {
    const char *name;
    int32_t value, most;
  };
  for (auto [name, value, most] :
       {Range{"experts", shape.experts, kMostExperts}, Range{"replicas", shape.replicas, kMostReplicas},
        Range{"groups", shape.groups, kMostExperts}, Range{"nodes", shape.nodes, kMostReplicas},
        Range{"gpus", shape.gpus, kMostReplicas}})
    if (value < 1 || value > most)
      return formatv("{0} is {1}: it must be from 1 to {2}", name, value, most);
  if (shape.replicas < shape.experts)
    return formatv("{0} experts have {1} replicas: give at least one replica for each expert", shape.experts,
                   shape.replicas);
  if (shape.replicas % shape.gpus)
    return formatv("{0} replicas do not divide over {1} gpus: give a multiple of the gpus", shape.replicas, shape.gpus);
  if (shape.groups % shape.nodes)
    return "";
  if (shape.experts % shape.groups)
    return formatv("{0} experts do not divide into {1} groups: give groups of one size, or 1 group", shape.experts,
                   shape.groups);
  if (shape.gpus % shape.nodes)
    return formatv("{0} gpus do not divide over {1} nodes: give a multiple of the nodes, or 1 node", shape.gpus,
                   shape.nodes);
  return "";
}

std::string windlass::experts::checkPlacement(const Shape &shape, const Placement &placement) {
  if (placement.size() != static_cast<size_t>(shape.replicas))
    return formatv("places {0} replicas, but there are {1} slots", placement.size(), shape.replicas);
  for (int32_t expert : placement)
    if (expert < 0 || expert >= shape.experts)
      return formatv("places expert {0}, but there are experts 0 to {1}", expert, shape.experts - 1);
  std::vector<int32_t> counts = countReplicas(placement, shape.experts);
  if (auto missing = std::find(counts.begin(), counts.end(), 0); missing != counts.end())
    return formatv("places no replica of expert {0}: each expert needs one", missing - counts.begin());
  int32_t domains = shape.getDomains();
  if (domains == 1)
    return "";
  int32_t slots = shape.replicas / domains, experts = shape.experts / shape.groups;
  std::vector<int32_t> nodeOf(shape.groups, -1), groupsOn(domains, 0);
  for (int32_t slot = 0; slot < shape.replicas; ++slot) {
    int32_t group = placement[slot] / experts, node = slot / slots;
    if (nodeOf[group] >= 0 && nodeOf[group] != node)
      return formatv("places group {0} on nodes {1} and {2}: a group stays on one node", group, nodeOf[group], node);
    groupsOn[node] += nodeOf[group] < 0;
    nodeOf[group] = node;
  }
  for (int32_t node = 0; node < domains; ++node)
    if (groupsOn[node] != shape.groups / domains)
      return formatv("places {0} groups on node {1}: each of {2} nodes takes {3} of the {4} groups", groupsOn[node],
                     node, domains, shape.groups / domains, shape.groups);
  return "";
}

std::vector<int32_t> windlass::experts::countReplicas(const Placement &placement, int32_t experts) {
  std::vector<int32_t> counts(experts, 0);
  for (int32_t expert : placement)
    ++counts[expert];
  return counts;
}

std::vector<double> windlass::experts::computeGpuLoads(const Placement &placement, const std::vector<double> &loads,
                                                       int32_t gpus) {
  std::vector<int32_t> counts = countReplicas(placement, static_cast<int32_t>(loads.size()));
  std::vector<double> result(gpus, 0);
  size_t slots = placement.size() / gpus;
  for (size_t slot = 0; slot < placement.size(); ++slot)
    result[slot / slots] += loads[placement[slot]] / counts[placement[slot]];
  return result;
}

int32_t windlass::experts::countMoved(const Placement &before, const Placement &after, int32_t gpus) {
  size_t slots = after.size() / gpus;
  int32_t moved = 0;
  for (size_t begin = 0; begin < after.size(); begin += slots) {
    std::vector<int32_t> old(before.begin() + begin, before.begin() + begin + slots);
    std::vector<int32_t> now(after.begin() + begin, after.begin() + begin + slots), added;
    std::sort(old.begin(), old.end());
    std::sort(now.begin(), now.end());
    std::set_difference(now.begin(), now.end(), old.begin(), old.end(), std::back_inserter(added));
    moved += static_cast<int32_t>(added.size());
  }
  return moved;
}
