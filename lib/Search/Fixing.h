// Labels that no better solution can have, and solutions from fixing the labels that bounds are sure of.
#ifndef WINDLASS_LIB_SEARCH_FIXING_H
#define WINDLASS_LIB_SEARCH_FIXING_H

#include "Dual.h"
#include "Slack.h"
#include "windlass/Search/Meter.h"
#include "windlass/Support/Random.h"

#include <functional>

namespace windlass::search {

/// The best solution that a task knows. Other tasks learn of it when the task is done.
struct Incumbent {
  Solution labels;
  int64_t cost = kForbidden;
  /// Takes a solution of the problem where it fits and costs less.
  void offer(const Problem &problem, const Solution &solution);
  /// Returns the bound above which there is no better solution: costs are integers.
  double mostBound() const { return static_cast<double>(cost) - 1 + roundingOf(static_cast<double>(cost)); }
};

/// Bans labels that do not fit under any choice of the other nodes. Returns false when a node has no label left.
bool banWhatOverflows(Dual &dual, Meter &meter);

/// Takes steps of the dual that ban labels by their reduced costs. Returns true when nothing better than the incumbent
/// is left.
bool fixLabels(Dual &dual, Prices &prices, Incumbent &incumbent, int steps, Meter &meter);

/// Fixes nodes in descending order of how certain their labels are, and passes messages in between. `noise` changes the
/// order.
void dive(const Dual &start, Incumbent &incumbent, double noise, Random &random, Meter &meter);

} // namespace windlass::search

#endif
