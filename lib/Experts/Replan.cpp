#include "PlaceLayer.h"
#include "Repair.h"

#include <optional>
#include <set>

using namespace windlass;
using namespace windlass::experts;

/// The most partitions of groups that are tried besides that of before and of the best answer.
static constexpr size_t kMostExchanges = 4;
/// The most groups whose pairs are looked at.
static constexpr int32_t kMostGroups = 256;

/// Returns the groups on each node under a placement.
static Partition findPartition(const Domains &domains, const Placement &placement) {
  Partition partition;
  size_t slots = placement.size() / domains.getShape().getDomains();
  for (auto begin = placement.begin(); begin != placement.end(); begin += slots) {
    GroupSet groups;
    for (auto expert = begin; expert != begin + slots; ++expert)
      groups.push_back(*expert / domains.getGroupSize());
    std::sort(groups.begin(), groups.end());
    groups.erase(std::unique(groups.begin(), groups.end()), groups.end());
    partition.push_back(std::move(groups));
  }
  return partition;
}

/// Exchanges the nodes of a partition so that few groups move from `before`.
static Partition matchNodes(const Partition &before, const Partition &partition) {
  auto join = [](const Partition &nodes) {
    Placement groups;
    for (const GroupSet &node : nodes)
      groups.insert(groups.end(), node.begin(), node.end());
    return groups;
  };
  Placement matched = matchGpus(static_cast<int32_t>(before.size()), join(before), join(partition));
  Partition result;
  for (auto begin = matched.begin(); begin != matched.end(); begin += before.front().size())
    result.emplace_back(begin, begin + before.front().size());
  return result;
}

/// Lists partitions in which two groups of different nodes have changed places and the limit may be kept, the one with
/// the least bound first.
static std::vector<Partition> listExchanges(Domains &domains, const Partition &before, double limit) {
  if (domains.getShape().groups > kMostGroups)
    return {};
  std::vector<double> loads = domains.computeGroupLoads();
  std::vector<std::pair<double, Partition>> found;
  for (size_t node = 0; node < before.size(); ++node)
    for (size_t other = node + 1; other < before.size(); ++other)
      for (int32_t mine : before[node])
        for (int32_t theirs : before[other]) {
          Partition partition = before;
          std::replace(partition[node].begin(), partition[node].end(), mine, theirs);
          std::replace(partition[other].begin(), partition[other].end(), theirs, mine);
          double most = 0;
          for (GroupSet &groups : partition) {
            std::sort(groups.begin(), groups.end());
            double load = 0;
            for (int32_t group : groups)
              load += loads[group];
            most = std::max(most, load / domains.getGpusOfNode());
          }
          if (most <= limit)
            found.push_back({most, std::move(partition)});
        }
  std::sort(found.begin(), found.end());
  std::vector<Partition> result;
  for (auto &[most, partition] : found)
    if (result.size() < kMostExchanges)
      result.push_back(std::move(partition));
  return result;
}

/// Returns a placement with the groups on the nodes of a partition that keeps the limit and moves little, or nothing
/// where none is found.
static std::optional<Placement> repairNodes(Domains &domains, const Partition &partition, const Placement &before,
                                            double limit, WorkBudget &budget) {
  if (domains.getBound(partition) > limit)
    return std::nullopt;
  std::vector<Placement> nodes;
  size_t slots = before.size() / partition.size();
  for (size_t node = 0; node < partition.size(); ++node) {
    const GroupSet &groups = partition[node];
    const FlatAnswer &good = domains.solve(groups, limit);
    if (good.load > limit)
      return std::nullopt;
    Placement old;
    for (size_t slot = node * slots; slot < (node + 1) * slots; ++slot) {
      auto group = std::find(groups.begin(), groups.end(), before[slot] / domains.getGroupSize());
      old.push_back(group == groups.end() ? kGone
                                          : static_cast<int32_t>(group - groups.begin()) * domains.getGroupSize() +
                                                before[slot] % domains.getGroupSize());
    }
    nodes.push_back(repair(domains.makeProblem(groups), old, good.placement, limit, budget));
  }
  return joinNodes(domains, partition, nodes);
}

/// Gives the replicas that a GPU had their former slots.
static void alignSlots(const Placement &before, Placement &placement, size_t slots) {
  for (size_t begin = 0; begin < placement.size(); begin += slots) {
    std::multiset<int32_t> left(placement.begin() + begin, placement.begin() + begin + slots);
    std::vector<size_t> open;
    for (size_t slot = begin; slot < begin + slots; ++slot)
      if (auto same = left.find(before[slot]); same != left.end()) {
        placement[slot] = *same;
        left.erase(same);
      } else {
        open.push_back(slot);
      }
    auto next = left.begin();
    for (size_t slot : open)
      placement[slot] = *next++;
  }
}

ReplanAnswer windlass::experts::replanLayer(const Shape &shape, const std::vector<double> &loads,
                                            const Placement &before, double tolerance, const PlaceLimits &limits) {
  // Of the tolerance, half is for what would be found where anything may move, which then need not be the best.
  SearchLimits search{WorkBudget(limits.exploreSteps), WorkBudget(limits.exactSteps), tolerance / 2};
  WorkBudget budget(limits.repairSteps);
  FlatProblem whole{loads, shape.gpus, shape.getSlots()};
  Domains domains(shape, loads, search);
  ReplanAnswer answer;
  answer.loadBefore = computeLargestLoad(whole, before);
  bool isFlat = shape.getDomains() == 1;
  static_cast<LayerAnswer &>(answer) = isFlat ? placeFlat(whole, search) : placeGroups(domains, whole);
  // No placement has less than the bound, so that the limit is within the tolerance either way.
  double limit = (1 + tolerance) * (answer.load <= answer.bound * (1 + search.nearPart) ? answer.bound : answer.load);
  Placement best;
  if (answer.loadBefore <= limit) {
    best = before;
  } else if (isFlat) {
    best = repair(whole, before, answer.placement, limit, budget);
  } else {
    // The groups stay where they are, or two change places, or they lie as in the answer that moves anything.
    Partition old = findPartition(domains, before);
    std::vector<Partition> partitions = listExchanges(domains, old, limit);
    partitions.insert(partitions.begin(), old);
    partitions.push_back(matchNodes(old, findPartition(domains, answer.placement)));
    // Another partition moves two groups at the least, with a replica of each expert.
    int32_t fewest = 2 * domains.getGroupSize();
    for (const Partition &partition : partitions) {
      if (!best.empty() && countMoved(before, best, shape.gpus) <= fewest)
        break;
      if (std::optional<Placement> found = repairNodes(domains, partition, before, limit, budget))
        if (best.empty() || countMoved(before, *found, shape.gpus) < countMoved(before, best, shape.gpus))
          best = std::move(*found);
    }
  }
  // The answer that moves anything is there at the least; by rounding it may be above the limit.
  if (!best.empty())
    answer.placement = std::move(best);
  alignSlots(before, answer.placement, shape.getSlots());
  answer.moved = countMoved(before, answer.placement, shape.gpus);
  finish(whole, answer);
  return answer;
}
