// A problem made smaller, and what its solutions mean for the first one.
#ifndef WINDLASS_SEARCH_SHRUNK_H
#define WINDLASS_SEARCH_SHRUNK_H

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
  /// Whether no solution is allowed.
  bool isInfeasible = false;
  /// The numbers in the first problem of the nodes left.
  std::vector<int32_t> nodes;
  std::vector<ShrinkStep> steps;
  size_t originalNodes = 0;

  /// Returns the solution of the first problem that a solution of the smaller one stands for.
  Solution expand(const Solution &solution) const;
  /// Returns the labels of the nodes left in a solution of the first problem; 0 for labels that are gone, so it may be
  /// another solution, or none.
  Solution contract(const Solution &solution) const;
};

} // namespace windlass::search

#endif
