#include "Domains.h"

#include "LocalSearch.h"

#include <limits>
#include <numeric>

using namespace windlass::experts;

/// The most groups for which partitions are listed, and the most sets of groups that are looked at to do so.
static constexpr int32_t kMostGroups = 256;
static constexpr int64_t kMostSets = 50'000;
/// The most partitions that are listed, whose bounds have to be computed: as many experts in all.
static constexpr size_t kMostListedExperts = 1 << 15;
/// The steps of the search for one partition of many groups.
static constexpr int64_t kPartitionSteps = 1'000'000;

FlatProblem Domains::makeProblem(const GroupSet &groups) const {
  FlatProblem problem;
  problem.gpus = getGpusOfNode();
  problem.slots = shape.getSlots();
  for (int32_t expert = 0; expert < static_cast<int32_t>(groups.size()) * getGroupSize(); ++expert)
    problem.loads.push_back(loads[getExpert(groups, expert)]);
  return problem;
}

std::vector<double> Domains::computeGroupLoads() const {
  std::vector<double> sums(shape.groups, 0);
  for (int32_t expert = 0; expert < shape.experts; ++expert)
    sums[expert / getGroupSize()] += loads[expert];
  return sums;
}

Domains::Entry &Domains::find(const GroupSet &groups) {
  auto [entry, isNew] = entries.try_emplace(groups);
  if (isNew) {
    entry->second.bound = computeBound(makeProblem(groups));
    entry->second.enough = std::numeric_limits<double>::infinity();
  }
  return entry->second;
}

double Domains::getBound(const GroupSet &groups) { return find(groups).bound; }

double Domains::getBound(const Partition &partition) {
  double bound = 0;
  for (const GroupSet &groups : partition)
    bound = std::max(bound, getBound(groups));
  return bound;
}

const FlatAnswer &Domains::solve(const GroupSet &groups, double enough) {
  Entry &entry = find(groups);
  bool isSolved = !entry.answer.placement.empty();
  bool isGood = entry.answer.load <= enough || entry.answer.bound >= entry.answer.load || entry.enough <= enough;
  if (!isSolved || !isGood) {
    FlatAnswer answer = solveFlat(makeProblem(groups), enough, limits);
    entry.bound = std::max(entry.bound, answer.bound);
    entry.enough = enough;
    // With little left of the budgets a second search may find less than the first.
    if (!isSolved || answer.load < entry.answer.load)
      entry.answer = std::move(answer);
    entry.answer.bound = entry.bound;
  }
  return entry.answer;
}

namespace {

/// Lists partitions by the largest load that a node has under them.
class Lister {
public:
  explicit Lister(Domains &domains)
      : mostPartitions(std::max<size_t>(kMostListedExperts / domains.getShape().experts, 2)),
        nodes(domains.getShape().getDomains()), setSize(domains.getGroupsOfNode()), loads(domains.computeGroupLoads()),
        isTaken(loads.size(), false), order(loads.size()) {
    std::iota(order.begin(), order.end(), 0);
    // The heaviest group that is left begins each set, so that no partition comes twice.
    std::sort(order.begin(), order.end(),
              [&](int32_t a, int32_t b) { return std::pair(-loads[a], a) < std::pair(-loads[b], b); });
  }

  /// Returns whether all partitions were looked at.
  bool run() {
    beginSet(0);
    return !isSpent;
  }
  /// The largest load of a node, and the partition.
  std::multimap<double, Partition> found;
  /// The largest load of a node under partitions that were dropped is at least this.
  double dropped = std::numeric_limits<double>::infinity();

private:
  void beginSet(double largest) {
    if (static_cast<int32_t>(current.size()) == nodes) {
      Partition sorted = current;
      for (GroupSet &groups : sorted)
        std::sort(groups.begin(), groups.end());
      found.emplace(largest, std::move(sorted));
      if (found.size() > mostPartitions) {
        drop(std::prev(found.end())->first);
        found.erase(std::prev(found.end()));
      }
      return;
    }
    size_t first = 0;
    while (isTaken[first])
      ++first;
    current.push_back({});
    take(first, 0, largest);
    current.pop_back();
  }
  void take(size_t at, double sum, double largest) {
    isTaken[at] = true;
    current.back().push_back(order[at]);
    extend(at + 1, sum + loads[order[at]], largest);
    current.back().pop_back();
    isTaken[at] = false;
  }
  void extend(size_t from, double sum, double largest) {
    isSpent |= ++looked > kMostSets;
    double least = std::max(largest, sum);
    if (isSpent)
      return;
    if (found.size() == mostPartitions && least >= std::prev(found.end())->first)
      return drop(least);
    if (static_cast<int32_t>(current.back().size()) == setSize)
      return beginSet(least);
    for (size_t at = from; at < order.size() && !isSpent; ++at)
      if (!isTaken[at])
        take(at, sum, largest);
  }
  void drop(double largest) { dropped = std::min(dropped, largest); }

  size_t mostPartitions;
  int32_t nodes, setSize;
  std::vector<double> loads;
  std::vector<char> isTaken; // by place in the order
  std::vector<int32_t> order;
  Partition current;
  int64_t looked = 0;
  bool isSpent = false;
};

} // namespace

/// Turns a placement of groups in the slots of nodes into a partition.
static Partition toPartition(const Placement &placement, int32_t nodes) {
  size_t groups = placement.size() / nodes;
  Partition partition;
  for (auto begin = placement.begin(); begin != placement.end(); begin += groups) {
    partition.emplace_back(begin, begin + groups);
    std::sort(partition.back().begin(), partition.back().end());
  }
  return partition;
}

PartitionList windlass::experts::listPartitions(Domains &domains) {
  PartitionList list;
  Lister lister(domains);
  double gpus = domains.getGpusOfNode();
  if (domains.getShape().groups <= kMostGroups && lister.run()) {
    for (auto &[largest, partition] : lister.found)
      list.partitions.push_back(std::move(partition));
    list.boundOfOthers = lister.dropped / gpus;
  } else {
    // Groups lie on nodes as experts without further replicas lie on GPUs.
    FlatProblem problem{domains.computeGroupLoads(), domains.getShape().getDomains(), domains.getGroupsOfNode()};
    Placement start = packLargestFirst(problem, chooseCounts(problem));
    WorkBudget budget(kPartitionSteps);
    LocalSearch search(problem, start, budget);
    list.boundOfOthers = computeBound(problem) / gpus;
    search.explore(list.boundOfOthers * gpus);
    list.partitions = {toPartition(search.getPlacement(), problem.gpus), toPartition(start, problem.gpus)};
  }
  std::vector<std::pair<double, size_t>> order;
  for (size_t at = 0; at < list.partitions.size(); ++at)
    order.push_back({domains.getBound(list.partitions[at]), at});
  std::sort(order.begin(), order.end());
  std::vector<Partition> sorted;
  for (auto [bound, at] : order)
    sorted.push_back(std::move(list.partitions[at]));
  list.partitions = std::move(sorted);
  return list;
}
