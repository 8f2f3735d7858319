// The problem without groups: experts on the GPUs of one node, or of all where groups do not matter.
#ifndef WINDLASS_LIB_EXPERTS_FLATPROBLEM_H
#define WINDLASS_LIB_EXPERTS_FLATPROBLEM_H

#include "windlass/Experts/Placement.h"

#include <algorithm>

namespace windlass::experts {

/// Two loads of which one is larger by no more than this part are equal: what rounding in sums of replicas may make of
/// equal numbers.
constexpr double kEqualPart = 1e-9;

inline bool isBelow(double load, double other) { return load < other * (1 - kEqualPart); }

struct FlatProblem {
  /// The load of each expert.
  std::vector<double> loads;
  int32_t gpus = 1;
  /// The slots of each GPU. There are at least as many in all as experts.
  int32_t slots = 1;

  int32_t getExperts() const { return static_cast<int32_t>(loads.size()); }
  int32_t getReplicas() const { return gpus * slots; }
};

inline double computeLargestLoad(const FlatProblem &problem, const Placement &placement) {
  std::vector<double> loads = computeGpuLoads(placement, problem.loads, problem.gpus);
  return *std::max_element(loads.begin(), loads.end());
}

/// Returns a load that every placement reaches on some GPU.
double computeBound(const FlatProblem &problem);

/// Chooses the numbers of replicas that make the largest replica smallest: each further replica goes to the expert
/// whose replicas are largest.
std::vector<int32_t> chooseCounts(const FlatProblem &problem);

/// Places replicas of such numbers, the largest first, each on the GPU with the least load of those with a free slot.
Placement packLargestFirst(const FlatProblem &problem, const std::vector<int32_t> &counts);

} // namespace windlass::experts

#endif
