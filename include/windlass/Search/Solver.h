// Finds a good solution of a problem, and a bound that says how good.
#ifndef WINDLASS_SEARCH_SOLVER_H
#define WINDLASS_SEARCH_SOLVER_H

#include "windlass/Search/Shrink.h"

#include <functional>
#include <string>

namespace windlass::search {

struct SolveOptions {
  /// The operations that may be spent; one is about a nanosecond. The answer depends on it and on nothing else but the
  /// problem.
  int64_t workLimit = 10'000'000'000;
  /// A limit of time in place of the work limit when it is not negative. The answer then depends on the machine.
  double seconds = -1;
  /// The search ends, too, when no solution costs less than this.
  int64_t cutoff = kForbidden;
  /// The number of threads changes how long the search takes, and the answer only where time limits it.
  int threads = 1;
  /// A function that is told what happens, a line at a time.
  std::function<void(const std::string &)> log;
};

struct SolveResult {
  /// The best solution; empty when none was found.
  Solution solution;
  int64_t cost = kForbidden;
  /// The lower bound: no solution costs less; kForbidden when there is none.
  int64_t bound = 0;
  bool isFeasible() const { return !solution.empty(); }
  bool isOptimal() const { return isFeasible() && bound >= cost; }
};

/// Solves a problem.
SolveResult solve(const Problem &problem, const SolveOptions &options);
/// Solves a problem that has been shrunk, which takes as long as a short search.
SolveResult solve(const Problem &problem, const Shrunk &shrunk, const SolveOptions &options);

} // namespace windlass::search

#endif
