// Makes a problem smaller without losing its optimum.
#ifndef WINDLASS_SEARCH_SHRINK_H
#define WINDLASS_SEARCH_SHRINK_H

#include "windlass/Search/Problem.h"

#include <cstddef>

namespace windlass::search {

/// How the label of a node that is gone, or was numbered anew, follows from the labels of at most two others:
/// map[label of first * width + label of second]; a node of -1 has label 0.
struct ShrinkStep {
  int32_t node = 0, first = -1, second = -1, width = 1;
  std::vector<int32_t> map;
};

/// A smaller problem whose solutions stand for solutions of the first one, of the same cost, its best ones among them.
struct Shrunk {
  Problem problem;
  /// Nothing is allowed.
  bool isInfeasible = false;
  /// Of the nodes left, their numbers in the first problem.
  std::vector<int32_t> nodes;
  std::vector<ShrinkStep> steps;
  size_t originalNodes = 0;

  Solution expand(const Solution &solution) const;
  /// The other way: the labels of the nodes left; 0 for labels that are gone, so it may be another solution, or none.
  Solution contract(const Solution &solution) const;
};

/// Drops labels that cannot be chosen or are dominated; joins nodes whose labels determine each other; folds edges that
/// are sums, eliminates nodes without memory and of degree 2 at most; drops rows of memory that cannot be exceeded or
/// are implied by others. `work` bounds the operations of the steps that are not linear.
Shrunk shrink(const Problem &problem, int64_t work = int64_t(1) << 32);

} // namespace windlass::search

#endif
