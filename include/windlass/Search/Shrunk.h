// A problem that was made smaller, and the solutions of the original problem that its solutions stand for.
#ifndef WINDLASS_SEARCH_SHRUNK_H
#define WINDLASS_SEARCH_SHRUNK_H

#include "windlass/Search/Problem.h"

#include <cstddef>

namespace windlass::search {

/// The rule for the label of a node that was removed or renumbered: it follows from the labels of at most two others,
/// as map[label of first * width + label of second]. A node of -1 stands for label 0.
struct ShrinkStep {
  int32_t node = 0, first = -1, second = -1, width = 1;
  std::vector<int32_t> map;
};

/// A smaller problem whose solutions stand for solutions of the original one of the same cost, among them its best
/// ones.
struct Shrunk {
  Problem problem;
  /// Whether no solution is allowed.
  bool isInfeasible = false;
  /// The numbers that the remaining nodes have in the original problem.
  std::vector<int32_t> nodes;
  std::vector<ShrinkStep> steps;
  size_t originalNodes = 0;

  /// Returns the solution of the original problem that a solution of the smaller one stands for.
  Solution expand(const Solution &solution) const;
  /// Returns the labels of the remaining nodes in a solution of the original problem, 0 for labels that were dropped.
  /// The result may therefore stand for another solution, or for none that is allowed.
  Solution contract(const Solution &solution) const;
};

} // namespace windlass::search

#endif
