// Combines the best parts of several solutions.
#ifndef WINDLASS_LIB_SEARCH_MERGE_H
#define WINDLASS_LIB_SEARCH_MERGE_H

#include "Fixing.h"
#include "windlass/Search/Shrink.h"

#include <optional>

namespace windlass::search {

/// The best few solutions of one problem.
class Pool {
public:
  /// Adds a solution where one was found that the pool does not have.
  void add(const Incumbent &found);

  /// Returns the shrunk problem of choosing for each node a label that it has in one of the solutions; nothing is left
  /// to choose where they agree. It takes as many of the best solutions as leave at most `mostNodes` nodes. Returns
  /// nothing where not even two solutions do, or where none was added since the last call.
  std::optional<Shrunk> merge(const Problem &problem, size_t mostNodes);

private:
  std::vector<Incumbent> solutions; // by cost
  bool isMerged = true;
};

} // namespace windlass::search

#endif
