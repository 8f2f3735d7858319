// Solutions whose best parts belong together.
#ifndef WINDLASS_LIB_SEARCH_MERGE_H
#define WINDLASS_LIB_SEARCH_MERGE_H

#include "Fixing.h"
#include "windlass/Search/Shrink.h"

#include <optional>

namespace windlass::search {

/// The best few solutions of one problem.
class Pool {
public:
  /// Takes a solution that exists and is not there yet.
  void add(const Incumbent &found);

  /// Returns the problem of choosing for each node a label that it has in one of the solutions, shrunk: nothing is left
  /// to choose where they agree. It is made of as many of the best solutions as leave at most `mostNodes` nodes; there
  /// is none if not even two do, or if no solution was added since the last one.
  std::optional<Shrunk> merge(const Problem &problem, size_t mostNodes);

private:
  std::vector<Incumbent> solutions; // by cost
  bool isMerged = true;
};

} // namespace windlass::search

#endif
