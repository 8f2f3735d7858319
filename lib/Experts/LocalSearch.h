// Improves a placement step by step, replica counts together with where they lie.
#ifndef WINDLASS_LIB_EXPERTS_LOCALSEARCH_H
#define WINDLASS_LIB_EXPERTS_LOCALSEARCH_H

#include "Assignment.h"

#include "windlass/Support/Random.h"
#include "windlass/Support/WorkBudget.h"

#include <optional>

namespace windlass::experts {

class LocalSearch {
public:
  LocalSearch(const FlatProblem &problem, Placement placement, WorkBudget &budget)
      : problem(problem), budget(budget), state(problem, std::move(placement)) {}

  /// Makes the largest load smaller until it is at most `enough`, no step does so, or the budget is spent.
  void descend(double enough);
  /// Goes on from what it has by small changes at random and descents, and keeps the best, until its largest load is at
  /// most `enough` or the budget is spent.
  void explore(double enough);

  const Placement &getPlacement() const { return state.getPlacement(); }
  double getLargestLoad() const { return state.getLargestLoad(); }

private:
  /// The steps of a descent. Each makes the load of `gpu`, the largest, smaller, and no other as large; they return
  /// false where they can not.
  bool swapOne(int32_t gpu);
  bool replaceOne(int32_t gpu);
  bool swapTwo(int32_t gpu);
  void disturb();

  const FlatProblem &problem;
  WorkBudget &budget;
  Assignment state;
  Random random{1};
};

} // namespace windlass::experts

#endif
