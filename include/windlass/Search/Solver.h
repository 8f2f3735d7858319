// Finds a good solution of a problem, and a lower bound that says how good it is.
#ifndef WINDLASS_SEARCH_SOLVER_H
#define WINDLASS_SEARCH_SOLVER_H

#include "windlass/Search/Problem.h"

#include <functional>
#include <memory>
#include <string>

namespace windlass::search {

struct SolveOptions {
  /// The operations that may be spent; one takes about a nanosecond. The answer depends only on this limit and the
  /// problem.
  int64_t workLimit = 10'000'000'000;
  /// The limit of time in seconds, which replaces the work limit where it is not negative. The answer then depends on
  /// the machine.
  double seconds = -1;
  /// The search also ends when no solution costs less than this.
  int64_t cutoff = kForbidden;
  /// The number of threads. It changes how long the search takes, but not its answer, unless time is limited.
  int threads = 1;
  /// A function that is called with each line of the search's log.
  std::function<void(const std::string &)> log;
};

struct SolveResult {
  /// The best solution; empty when none was found.
  Solution solution;
  int64_t cost = kForbidden;
  /// The lower bound: no solution costs less. kForbidden where no solution is allowed.
  int64_t bound = 0;
  bool isFeasible() const { return !solution.empty(); }
  bool isOptimal() const { return isFeasible() && bound >= cost; }
};

struct ShrunkModel;

/// Solves a problem, several times if asked to. The constructor does what every search begins with, which takes as long
/// as a short search.
class Solver {
public:
  /// `problem` must outlive the solver.
  explicit Solver(const Problem &problem);
  SolveResult solve(const SolveOptions &options) const;

private:
  const Problem &problem;
  std::shared_ptr<const ShrunkModel> shrunk;
};

/// Solves a problem.
SolveResult solve(const Problem &problem, const SolveOptions &options);

} // namespace windlass::search

#endif
