#include "LocalSearch.h"

#include <tuple>

using namespace windlass::experts;

/// The most slots of a GPU for which steps exchange two replicas at once: with more, single ones come as near.
static constexpr int32_t kMostSlotsOfPairs = 24;

void LocalSearch::descend(double enough) {
  for (;;) {
    int32_t gpu = state.findLargest();
    if (state.getLoad(gpu) <= enough || !budget.spend(problem.gpus))
      return;
    if (!swapOne(gpu) && !replaceOne(gpu) && !swapTwo(gpu))
      return;
  }
}

bool LocalSearch::swapOne(int32_t gpu) {
  const double *sizes = state.getSizes();
  int32_t slots = problem.slots, mine = -1, theirs = -1;
  double largest = state.getLoad(gpu), best = largest * (1 - 1e-12);
  for (int32_t other = 0; other < problem.gpus; ++other) {
    double load = state.getLoad(other), distance = largest - load;
    // At best both get the mean of the two.
    if (load + distance / 2 >= best)
      continue;
    if (!budget.spend(static_cast<int64_t>(slots) * slots))
      return false;
    for (int32_t i = gpu * slots; i < (gpu + 1) * slots; ++i)
      for (int32_t j = other * slots; j < (other + 1) * slots; ++j) {
        double change = sizes[i] - sizes[j], result = std::max(largest - change, load + change);
        if (result < best) {
          best = result;
          mine = i;
          theirs = j;
        }
      }
  }
  if (mine < 0)
    return false;
  state.swap(mine, theirs);
  return true;
}

bool LocalSearch::replaceOne(int32_t gpu) {
  if (problem.getReplicas() == problem.getExperts())
    return false;
  int32_t bestSlot = -1, bestExpert = -1;
  double best = state.getLoad(gpu) * (1 - 1e-12);
  // Returns false when the budget is spent.
  auto look = [&](int32_t slot, int32_t expert) {
    int32_t removed = state.getExpert(slot);
    if (removed == expert || state.getCount(removed) < 2)
      return budget.spend(1);
    if (!budget.spend(8 * (state.getCount(removed) + state.getCount(expert))))
      return false;
    bool lowersLargest = false;
    double result = 0;
    for (const GpuLoad &each : state.previewReplace(slot, expert)) {
      result = std::max(result, each.load);
      lowersLargest |= each.gpu == gpu;
    }
    if (lowersLargest && result < best) {
      best = result;
      bestSlot = slot;
      bestExpert = expert;
    }
    return true;
  };
  int32_t begin = gpu * problem.slots, end = begin + problem.slots;
  for (int32_t slot = begin; slot < end; ++slot) {
    if (state.getCount(state.getExpert(slot)) > 1)
      for (int32_t expert = 0; expert < problem.getExperts(); ++expert)
        if (!look(slot, expert))
          return false;
    for (int32_t other = 0; other < problem.getReplicas(); ++other)
      if (!look(other, state.getExpert(slot)))
        return false;
  }
  if (bestSlot < 0)
    return false;
  state.replace(bestSlot, bestExpert);
  return true;
}

namespace {

struct Pair {
  double size;
  int32_t first, second;
};

} // namespace

static void listPairs(const Assignment &state, int32_t begin, int32_t end, std::vector<Pair> &pairs) {
  pairs.clear();
  for (int32_t i = begin; i < end; ++i)
    for (int32_t j = i + 1; j < end; ++j)
      pairs.push_back({state.getSize(i) + state.getSize(j), i, j});
  std::sort(pairs.begin(), pairs.end(), [](const Pair &a, const Pair &b) {
    return std::tie(a.size, a.first, a.second) < std::tie(b.size, b.first, b.second);
  });
}

bool LocalSearch::swapTwo(int32_t gpu) {
  int32_t slots = problem.slots;
  if (slots < 2 || slots > kMostSlotsOfPairs)
    return false;
  std::vector<Pair> mine, theirs;
  listPairs(state, gpu * slots, (gpu + 1) * slots, mine);
  double largest = state.getLoad(gpu), best = largest * (1 - 1e-12);
  std::optional<std::pair<Pair, Pair>> found;
  for (int32_t other = 0; other < problem.gpus; ++other) {
    double load = state.getLoad(other), distance = largest - load;
    if (load + distance / 2 >= best)
      continue;
    if (!budget.spend(16 * static_cast<int64_t>(mine.size())))
      return false;
    listPairs(state, other * slots, (other + 1) * slots, theirs);
    // Both lists ascend: the pairs of the other GPU that are nearest to half of the distance below one of ours are the
    // last that leaves more than that, and the next.
    size_t next = 0;
    for (const Pair &pair : mine) {
      while (next < theirs.size() && pair.size - theirs[next].size > distance / 2)
        ++next;
      for (size_t at = next - (next > 0); at < std::min(next + 1, theirs.size()); ++at) {
        double change = pair.size - theirs[at].size, result = std::max(largest - change, load + change);
        if (result < best) {
          best = result;
          found = {pair, theirs[at]};
        }
      }
    }
  }
  if (!found)
    return false;
  state.swap(found->first.first, found->second.first);
  state.swap(found->first.second, found->second.second);
  return true;
}

void LocalSearch::disturb() {
  int32_t replicas = problem.getReplicas(), begin = state.findLargest() * problem.slots;
  for (int32_t times = 1 + random.below(3); times > 0; --times) {
    int32_t slot = random.below(replicas), expert = state.getExpert(random.below(replicas));
    // Half of the changes concern the GPU that has to lose load.
    if (random.below(2))
      slot = begin + random.below(problem.slots);
    if (random.below(2) && state.getCount(state.getExpert(slot)) > 1 && state.getExpert(slot) != expert)
      state.replace(slot, expert);
    else
      state.swap(slot, random.below(replicas));
  }
}

void LocalSearch::explore(double enough) {
  descend(enough);
  Placement best = state.getPlacement();
  double bestLoad = state.getLargestLoad();
  // What a restart costs.
  int64_t cost = 8 * static_cast<int64_t>(problem.getReplicas() + problem.getExperts());
  while (bestLoad > enough && budget.spend(cost)) {
    disturb();
    descend(enough);
    if (state.getLargestLoad() <= bestLoad) {
      bestLoad = state.getLargestLoad();
      best = state.getPlacement();
    } else {
      state.assign(best);
    }
  }
  if (state.getLargestLoad() > bestLoad)
    state.assign(best);
}
