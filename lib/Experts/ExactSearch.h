// Branch and bound over replica counts and places of few experts.
#ifndef WINDLASS_LIB_EXPERTS_EXACTSEARCH_H
#define WINDLASS_LIB_EXPERTS_EXACTSEARCH_H

#include "FlatProblem.h"

#include "windlass/Support/WorkBudget.h"

#include <set>

namespace windlass::experts {

/// Takes the experts one after the other, the largest load first, and tries for each all numbers of replicas on all
/// sets of GPUs that differ. GPUs with the same load and as many free slots do not.
class ExactSearch {
public:
  /// Looks for placements better than `best`, whose largest load `bound` bounds.
  ExactSearch(const FlatProblem &problem, Placement best, double bound, WorkBudget &budget);

  /// Returns whether all placements were tried or refuted, so that the best is optimal: no other is better by more than
  /// `kEqualPart`.
  bool run();
  const Placement &getPlacement() const { return best; }

private:
  struct Gpu {
    double load = 0;
    int32_t free = 0;
  };

  bool isDone() const { return isSpent || !isBelow(bound, limit); }
  void setLimit(double load) { limit = load * (1 - kEqualPart); }
  /// Tries to place the experts from `rank` on.
  void placeExpert(int32_t rank);
  void placeReplicas(int32_t rank, double size, int32_t left, int32_t firstGpu);
  bool isHopeless(int32_t rank, double &largestRoom);
  /// Returns all that matters for the experts from `rank` on: rank, and the GPUs with free slots, sorted.
  std::vector<double> describeState(int32_t rank) const;
  void takeSolution();

  const FlatProblem &problem;
  WorkBudget &budget;
  Placement best;
  double bound;
  /// The largest load that is still of interest.
  double limit = 0;
  bool isSpent = false;
  /// The experts by falling load; the loads in this order; the sum of those from each rank on.
  std::vector<int32_t> order;
  std::vector<double> loads, loadFrom;
  /// The sum of the smallest loads, by their number.
  std::vector<double> smallest;
  std::vector<Gpu> gpus;
  int32_t freeSlots = 0;
  std::vector<std::pair<int32_t, int32_t>> placed; // rank, GPU
  std::vector<int32_t> counts;                     // by rank
  int64_t solutions = 0;
  /// The states from which nothing better was found.
  std::set<std::vector<double>> hopeless;
};

} // namespace windlass::experts

#endif
