#include "FlatProblem.h"

#include <cmath>
#include <limits>
#include <numeric>
#include <queue>
#include <set>

using namespace windlass::experts;

std::vector<int32_t> windlass::experts::chooseCounts(const FlatProblem &problem) {
  std::vector<int32_t> counts(problem.getExperts(), 1);
  // The largest replica first; of equal ones the expert that comes first.
  std::priority_queue<std::pair<double, int32_t>> replicas;
  for (int32_t expert = 0; expert < problem.getExperts(); ++expert)
    replicas.push({problem.loads[expert], -expert});
  for (int32_t more = problem.getReplicas() - problem.getExperts(); more > 0; --more) {
    int32_t expert = -replicas.top().second;
    replicas.pop();
    replicas.push({problem.loads[expert] / ++counts[expert], -expert});
  }
  return counts;
}

Placement windlass::experts::packLargestFirst(const FlatProblem &problem, const std::vector<int32_t> &counts) {
  std::vector<int32_t> order(problem.getExperts());
  std::iota(order.begin(), order.end(), 0);
  auto sizeOf = [&](int32_t expert) { return problem.loads[expert] / counts[expert]; };
  std::sort(order.begin(), order.end(),
            [&](int32_t a, int32_t b) { return std::pair(-sizeOf(a), a) < std::pair(-sizeOf(b), b); });
  Placement placement(problem.getReplicas());
  std::vector<int32_t> used(problem.gpus, 0);
  std::set<std::pair<double, int32_t>> open; // load and GPU of those with a free slot
  for (int32_t gpu = 0; gpu < problem.gpus; ++gpu)
    open.insert({0, gpu});
  for (int32_t expert : order)
    for (int32_t copy = 0; copy < counts[expert]; ++copy) {
      auto [load, gpu] = *open.begin();
      open.erase(open.begin());
      placement[gpu * problem.slots + used[gpu]] = expert;
      if (++used[gpu] < problem.slots)
        open.insert({load + sizeOf(expert), gpu});
    }
  return placement;
}

namespace {

/// Refutes that a largest load is possible.
class Refuter {
public:
  static constexpr int32_t kMostLarge = 16;

  explicit Refuter(const FlatProblem &problem)
      : loads(problem.loads), gpus(problem.gpus), slots(problem.slots), replicas(problem.getReplicas()) {}

  /// Returns whether no placement keeps all GPUs at `target` or below, as far as the numbers of replicas tell.
  bool refutes(double target) {
    // For each k, a GPU takes at most k replicas above target / (k + 1). Where k is large that says little more than
    // the mean load does.
    for (int32_t k = 1; k < std::min(slots, kMostLarge); ++k)
      if (refutesLarge(target, k))
        return true;
    return countNeeded(target) > replicas;
  }

private:
  /// The fewest replicas of which none is above `size`; a little of rounding is on the side of fewer.
  int64_t countFewest(double load, double size) const {
    double count = std::ceil(load / size * (1 - 1e-12));
    // More than there are is as good as any such number.
    return count < 1 ? 1 : count > replicas ? replicas + 1 : static_cast<int64_t>(count);
  }

  int64_t countNeeded(double target) const {
    int64_t needed = 0;
    for (double load : loads)
      needed += countFewest(load, target);
    return needed;
  }

  /// An expert has the fewest replicas that `target` allows, which may be above target / (k + 1), or so many that none
  /// is. Any number between makes more large ones of more replicas. At most k * gpus may be large; the experts that pay
  /// least for it are made small, the last of them only as far as is needed, which a bound may.
  bool refutesLarge(double target, int32_t k) {
    int64_t needed = 0, large = 0;
    exchanges.clear();
    for (double load : loads) {
      int64_t fewest = countFewest(load, target);
      needed += fewest;
      if (needed > replicas)
        return true;
      int64_t small = countFewest(load, target / (k + 1));
      if (small > fewest) {
        large += fewest;
        exchanges.push_back({static_cast<double>(small - fewest) / fewest, fewest});
      }
    }
    double excess = static_cast<double>(large - static_cast<int64_t>(k) * gpus), added = 0;
    if (excess <= 0)
      return false;
    std::sort(exchanges.begin(), exchanges.end());
    for (auto [price, removed] : exchanges) {
      double part = std::min(excess, static_cast<double>(removed));
      added += price * part;
      excess -= part;
      if (excess <= 0)
        break;
    }
    return static_cast<double>(needed) + added > replicas + 1e-6;
  }

  const std::vector<double> &loads;
  int32_t gpus, slots, replicas;
  std::vector<std::pair<double, int64_t>> exchanges; // replicas more for each large one less; large ones
};

/// The smallest loads that replicas in some slots of one GPU can have together.
class Fillers {
public:
  explicit Fillers(const FlatProblem &problem)
      : slots(problem.slots), extra(problem.getReplicas() - problem.getExperts()),
        least((slots + 1) * (extra + 1), std::numeric_limits<double>::infinity()) {
    for (int32_t left = 0; left <= extra; ++left)
      least[left] = 0;
    std::vector<double> loads = problem.loads;
    std::sort(loads.begin(), loads.end());
    // Only the smallest experts matter: any other can be exchanged for one of them that is not used. The largest is
    // left out.
    loads.resize(std::min<size_t>(slots, loads.size() - 1));
    for (double load : loads)
      add(load);
  }

  /// Whether computing them takes little time.
  static bool isCheap(const FlatProblem &problem) {
    double slots = problem.slots, extra = problem.getReplicas() - problem.getExperts();
    return slots * slots * (extra + 1) * (extra + 1) * std::min(slots, extra + 1) < 2e6;
  }

  /// Returns the smallest load of `count` replicas of experts that have together at most `more` replicas beyond one
  /// each; infinite where there are none.
  double get(int32_t count, int32_t more) const { return least[count * (extra + 1) + more]; }

private:
  /// Lets an expert have `replicas` in all, `here` of them in the slots.
  void add(double load) {
    // From many slots to few, so that the expert counts once.
    for (int32_t count = slots; count > 0; --count)
      for (int32_t more = extra; more >= 0; --more)
        for (int32_t replicas = 1; replicas <= more + 1; ++replicas)
          for (int32_t here = 1; here <= std::min(replicas, count); ++here) {
            double &best = least[count * (extra + 1) + more];
            best = std::min(best, get(count - here, more - (replicas - 1)) + here * load / replicas);
          }
  }

  int32_t slots, extra;
  std::vector<double> least; // by count, then by more
};

} // namespace

/// Some GPU has a replica of the expert with the largest load, and has to fill its other slots: with further replicas
/// of this expert or with the smallest of others. The replicas beyond one for each expert serve either.
static double computeFullnessBound(const FlatProblem &problem) {
  if (problem.getExperts() == 1 || !Fillers::isCheap(problem))
    return 0;
  Fillers fillers(problem);
  double largest = *std::max_element(problem.loads.begin(), problem.loads.end());
  double bound = std::numeric_limits<double>::infinity();
  int32_t extra = problem.getReplicas() - problem.getExperts();
  for (int32_t replicas = 1; replicas <= extra + 1; ++replicas)
    for (int32_t here = 1; here <= std::min(replicas, problem.slots); ++here)
      bound = std::min(bound, here * largest / replicas + fillers.get(problem.slots - here, extra - (replicas - 1)));
  return bound;
}

double windlass::experts::computeBound(const FlatProblem &problem) {
  double total = std::accumulate(problem.loads.begin(), problem.loads.end(), 0.0);
  double bound = std::max(total / problem.gpus, computeFullnessBound(problem));
  Refuter refuter(problem);
  // A larger load is harder to refute: halve the distance between one that is refuted and one that is not.
  if (total > 0 && refuter.refutes(bound)) {
    double possible = total;
    for (int step = 0; step < 48 && isBelow(bound, possible); ++step) {
      double middle = bound + (possible - bound) / 2;
      (refuter.refutes(middle) ? bound : possible) = middle;
    }
  }
  // Where no load is divided, sums of whole numbers are whole.
  auto isWhole = [](double load) { return load == std::floor(load); };
  if (problem.getReplicas() == problem.getExperts() && std::all_of(problem.loads.begin(), problem.loads.end(), isWhole))
    bound = std::ceil(bound * (1 - kEqualPart));
  return bound;
}
