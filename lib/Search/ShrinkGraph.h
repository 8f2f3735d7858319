// A problem while it is made smaller: every edge has a table of its own, and nodes know their edges.
#ifndef WINDLASS_LIB_SEARCH_SHRINKGRAPH_H
#define WINDLASS_LIB_SEARCH_SHRINKGRAPH_H

#include "windlass/Search/Shrunk.h"

#include <vector>

namespace windlass::search {

struct ShrinkNode {
  std::vector<int64_t> costs;
  std::vector<Piece> pieces;
  std::vector<int32_t> edges;
  bool isAlive = true;
  int32_t labels() const { return static_cast<int32_t>(costs.size()); }
};

struct ShrinkEdge {
  int32_t from, to;
  std::vector<int64_t> table;
  bool isAlive = true;
  int32_t other(int32_t node) const { return from == node ? to : from; }
};

/// The problem between the steps that make it smaller.
class ShrinkGraph {
public:
  ShrinkGraph(const Problem &problem, int64_t work);

  /// Each of these steps changes the problem, keeps its optimum, and returns whether it changed something.
  bool dropUnsupported();
  bool foldSingles();
  bool foldSums();
  bool joinBijections();
  bool dropDominated();
  bool eliminateLeaves();
  bool reduceRows();

  bool infeasible() const { return isInfeasible; }
  Shrunk finish();

private:
  int64_t costOf(const ShrinkEdge &edge, int32_t node, int32_t own, int32_t others) const {
    return edge.from == node ? edge.table[static_cast<size_t>(own) * nodes[edge.to].labels() + others]
                             : edge.table[static_cast<size_t>(others) * nodes[edge.to].labels() + own];
  }
  /// Adds the diagonal of an edge from a node to itself to the node's costs, joins parallel edges, and lists the edges
  /// anew.
  void connect();
  void removeEdge(int32_t e);
  /// Adds the table of a new edge, oriented as given, to the edge that is between the two nodes already, or makes one.
  void addEdge(int32_t from, int32_t to, std::vector<int64_t> table);
  /// Drops the labels for which `isBanned` holds.
  bool dropLabels(const std::vector<std::vector<char>> &isBanned);
  void tidyPieces(ShrinkNode &node);
  bool isBijection(const ShrinkEdge &edge, std::vector<int32_t> &map) const;
  bool dominates(int32_t i, int32_t better, int32_t worse, const std::vector<std::vector<int64_t>> &tables,
                 const std::vector<std::vector<int32_t>> &answers, const std::vector<std::vector<char>> &isBanned);
  bool eliminate(int32_t i);
  bool applyRows(const std::vector<char> &isKept);
  /// Subtracts from the capacities what dropped pieces took, and adds it to the loads of the streams.
  void chargeTaken();

  Problem problem; // without nodes, edges and tables
  std::vector<ShrinkNode> nodes;
  std::vector<ShrinkEdge> edges;
  std::vector<ShrinkStep> steps;
  /// The amounts that dropped pieces took, as differences from row to row.
  std::vector<int64_t> taken;
  int64_t work;
  bool isInfeasible = false;
};

} // namespace windlass::search

#endif
