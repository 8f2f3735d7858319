#include "ExactSearch.h"

#include <cmath>
#include <numeric>

using namespace windlass::experts;

/// The most numbers that the states in memory may hold: what is not remembered is searched again.
static constexpr size_t kMostNumbers = 1 << 16;
/// What one step costs for each GPU or expert that it looks at, in units of the budget.
static constexpr int64_t kStepCost = 4;

ExactSearch::ExactSearch(const FlatProblem &problem, Placement best, double bound, WorkBudget &budget)
    : problem(problem), budget(budget), best(std::move(best)), bound(bound), order(problem.getExperts()),
      gpus(problem.gpus), freeSlots(problem.getReplicas()), counts(problem.getExperts(), 0) {
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(),
            [&](int32_t a, int32_t b) { return std::pair(-problem.loads[a], a) < std::pair(-problem.loads[b], b); });
  for (int32_t expert : order)
    loads.push_back(problem.loads[expert]);
  loadFrom.assign(loads.size() + 1, 0);
  for (size_t rank = loads.size(); rank-- > 0;)
    loadFrom[rank] = loadFrom[rank + 1] + loads[rank];
  smallest.push_back(0);
  for (size_t rank = loads.size(); rank-- > 0;)
    smallest.push_back(smallest.back() + loads[rank]);
  for (Gpu &gpu : gpus)
    gpu.free = problem.slots;
  setLimit(computeLargestLoad(problem, this->best));
}

bool ExactSearch::run() {
  placeExpert(0);
  return !isSpent;
}

/// Returns whether the experts from `rank` on do not fit under the limit. Else `largestRoom` is the room of the GPU
/// that has most.
bool ExactSearch::isHopeless(int32_t rank, double &largestRoom) {
  int32_t experts = problem.getExperts(), left = experts - rank;
  if (freeSlots < left)
    return true;
  // Replicas of the experts that are left carry at most `loads[rank]` each, and no GPU takes more than its room.
  double room = 0;
  largestRoom = 0;
  for (const Gpu &gpu : gpus) {
    if (gpu.free == 0)
      continue;
    double own = limit - gpu.load;
    // Where each expert that is left has one replica, a GPU takes at least as many of the smallest as it has slots.
    if (freeSlots == left && smallest[gpu.free] * (1 - kEqualPart) > own)
      return true;
    room += std::min(own, gpu.free * loads[rank]);
    largestRoom = std::max(largestRoom, own);
  }
  if (room < loadFrom[rank] * (1 - kEqualPart))
    return true;
  if (largestRoom <= 0)
    return loads[rank] > 0;
  int64_t needed = 0;
  for (int32_t each = rank; each < experts; ++each) {
    needed += std::max(1.0, std::ceil(std::min(loads[each] / largestRoom * (1 - kEqualPart), 1e6)));
    if (needed > freeSlots)
      return true;
  }
  return false;
}

std::vector<double> ExactSearch::describeState(int32_t rank) const {
  std::vector<std::pair<double, double>> open;
  for (const Gpu &gpu : gpus)
    if (gpu.free > 0)
      open.push_back({gpu.load, gpu.free});
  std::sort(open.begin(), open.end());
  std::vector<double> state = {static_cast<double>(rank)};
  // Experts of equal loads have falling numbers of replicas.
  state.push_back(rank > 0 && loads[rank - 1] == loads[rank] ? counts[rank - 1] : 0);
  for (auto [load, free] : open) {
    state.push_back(load);
    state.push_back(free);
  }
  return state;
}

void ExactSearch::placeExpert(int32_t rank) {
  int32_t experts = problem.getExperts();
  if (rank == experts)
    return takeSolution();
  if (isDone())
    return;
  if (!budget.spend(kStepCost * (problem.gpus + experts - rank))) {
    isSpent = true;
    return;
  }
  double largestRoom;
  if (isHopeless(rank, largestRoom))
    return;
  std::vector<double> state = describeState(rank);
  if (hopeless.count(state))
    return;
  int64_t before = solutions;
  int32_t most = freeSlots - (experts - rank - 1);
  // All slots are filled, so that the last expert takes what is left.
  int32_t least = rank + 1 == experts ? most : 1;
  if (rank > 0 && loads[rank - 1] == loads[rank])
    most = std::min(most, counts[rank - 1]);
  for (int32_t count = least; count <= most && !isDone(); ++count) {
    double size = loads[rank] / count;
    if (size * (1 - kEqualPart) > largestRoom)
      continue;
    counts[rank] = count;
    placeReplicas(rank, size, count, 0);
  }
  // Where nothing was found here, nothing will be under a lower limit. Where something was, its largest load may be
  // that of a GPU which is full already: with others full, the same rest may give something better.
  if (solutions == before && (hopeless.size() + 1) * (2 * gpus.size() + 2) <= kMostNumbers)
    hopeless.insert(std::move(state));
}

void ExactSearch::placeReplicas(int32_t rank, double size, int32_t left, int32_t firstGpu) {
  if (left == 0)
    return placeExpert(rank + 1);
  if (!budget.spend(kStepCost * problem.gpus))
    isSpent = true;
  for (int32_t at = firstGpu; at < problem.gpus && !isDone(); ++at) {
    Gpu before = gpus[at];
    if (before.free == 0 || before.load + size > limit)
      continue;
    auto isEqual = [&](const Gpu &gpu) { return gpu.load == before.load && gpu.free == before.free; };
    if (std::any_of(gpus.begin() + firstGpu, gpus.begin() + at, isEqual))
      continue;
    gpus[at] = {before.load + size, before.free - 1};
    --freeSlots;
    placed.push_back({rank, at});
    placeReplicas(rank, size, left - 1, at);
    placed.pop_back();
    ++freeSlots;
    gpus[at] = before;
  }
}

void ExactSearch::takeSolution() {
  std::vector<int32_t> used(problem.gpus, 0);
  for (auto [rank, gpu] : placed)
    best[gpu * problem.slots + used[gpu]++] = order[rank];
  setLimit(computeLargestLoad(problem, best));
  ++solutions;
}
