// Local search whose moves choose the labels of a random tree of nodes at once, the best ones by dynamic programming.
#ifndef WINDLASS_LIB_SEARCH_TREESEARCH_H
#define WINDLASS_LIB_SEARCH_TREESEARCH_H

#include "Model.h"
#include "Slack.h"
#include "windlass/Search/Meter.h"
#include "windlass/Support/Random.h"

namespace windlass::search {

struct TreeSearchOptions {
  /// The most nodes of a tree.
  int32_t treeNodes = 100;
  /// The noise at the start, as a part of the cost; it falls to a thousandth, in the end to 0.
  double temperature = 1e-4;
  uint64_t seed = 1;
};

/// A local search on one problem.
class TreeSearch {
public:
  /// Begins with rows that cost `prices`, which fall during the search: while they are high, it stays away from full
  /// rows.
  TreeSearch(const Model &model, const std::vector<double> &prices, const TreeSearchOptions &options);

  /// Improves `start`, which need not fit; returns the best solution that fits, or nothing where there is none.
  Solution run(const Solution &start, Meter &meter);
  /// Returns the labels with which the search ended: without noise, no labels of a tree are better than these. They may
  /// not fit.
  const Solution &last() const { return label; }

private:
  void begin(const Solution &start);
  void setScale(double scale);
  void lowerCeiling();
  void move(double temperature);
  void growTree(int32_t wanted);
  void takeOut(int32_t i, int64_t sign);
  bool roomFor(int32_t i, int32_t x) const;
  void fillUnary(int32_t k);
  void sendUp(int32_t k);
  bool choose(double temperature);
  int64_t exactChange() const;
  int64_t windowChange();
  void undo();
  int64_t costAt(const Arc &arc, int32_t x) const {
    return static_cast<int64_t>(arc.table[static_cast<size_t>(x) * m.stride[arc.other] + label[arc.other]]);
  }

  const Model &m;
  TreeSearchOptions options;
  Random random;
  std::vector<double> price, firstPrice;
  Doubles unary; // cost and scaled price, over all labels
  double scale = 1;
  std::vector<double> noise;

  Solution label, bestLabels;
  int64_t cost = 0, best = kForbidden;
  bool isBestSaved = true;
  Slack slack;
  std::vector<int64_t> streams, oldStreams;
  int64_t windowCost = 0;
  /// The bytes by which infeasible starts exceed the capacity, by row.
  std::vector<int64_t> extra;
  bool isRaised = false;

  /// The tree: nodes with their parents' positions, in the order in which they were added.
  std::vector<int32_t> tree, parent, position, touches, frontier, touched;
  std::vector<const Arc *> up; // arc from a node to its parent
  std::vector<size_t> treeOffset;
  std::vector<int32_t> oldLabel, newLabel;
  Doubles h, scratch, room;
  int64_t work = 0;
};

} // namespace windlass::search

#endif
