// Solves the problem without groups.
#ifndef WINDLASS_LIB_EXPERTS_SOLVEFLAT_H
#define WINDLASS_LIB_EXPERTS_SOLVEFLAT_H

#include "FlatProblem.h"

#include "windlass/Support/WorkBudget.h"

namespace windlass::experts {

struct FlatAnswer {
  Placement placement;
  double load = 0;
  /// No placement has a smaller largest load; equal to `load` where the placement is optimal.
  double bound = 0;
};

/// What a search may cost, and when it is good enough.
struct SearchLimits {
  /// The steps of local search, and of the search that tries everything.
  WorkBudget explore, exact;
  /// A largest load that is above the bound by no more than this part of it is not made smaller.
  double nearPart;
};

/// Finds a placement. The search ends when its largest load is at most `enough`, is near enough to the bound, or when
/// the limits are reached.
FlatAnswer solveFlat(const FlatProblem &problem, double enough, SearchLimits &limits);

} // namespace windlass::experts

#endif
