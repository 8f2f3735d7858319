// Finds a good solution of a problem, and a bound that says how good.
#ifndef WINDLASS_SEARCH_SOLVER_H
#define WINDLASS_SEARCH_SOLVER_H

#include "windlass/Search/Shrink.h"

#include <functional>
#include <string>

namespace windlass::search {

struct SolveOptions {
  /// Operations; one is about a nanosecond. The answer depends on it and on nothing else but the problem.
  int64_t workLimit = 10'000'000'000;
  /// Takes the place of the work limit when it is not negative. The answer then depends on the machine.
  double seconds = -1;
  /// It ends when no solution costs less than this, too.
  int64_t cutoff = kForbidden;
  /// Changes how long it takes; the answer only where time limits it.
  int threads = 1;
  /// Is told what happens, a line at a time.
  std::function<void(const std::string &)> log;
};

struct SolveResult {
  /// Empty when none was found.
  Solution solution;
  int64_t cost = kForbidden;
  /// No solution costs less; kForbidden when there is none.
  int64_t bound = 0;
  bool isFeasible() const { return !solution.empty(); }
  bool isOptimal() const { return isFeasible() && bound >= cost; }
};

SolveResult solve(const Problem &problem, const SolveOptions &options);
/// The same for a problem that has been shrunk, which takes as long as a short search.
SolveResult solve(const Problem &problem, const Shrunk &shrunk, const SolveOptions &options);

} // namespace windlass::search

#endif
