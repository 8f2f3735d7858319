// The problem of choosing one label for each node: the labels, their costs, and which choices are allowed. Plain
// classes.
#ifndef WINDLASS_SEARCH_PROBLEM_H
#define WINDLASS_SEARCH_PROBLEM_H

#include <cstdint>
#include <limits>
#include <vector>

namespace windlass::search {

/// The least cost that stands for "not allowed"; so does every sum of costs from here on.
constexpr int64_t kForbidden = 10'000'000'000'000'000;

/// A number of bytes that no plan exceeds, small enough that the sums of what plans need stay within 64 bits.
constexpr int64_t kUnlimitedBytes = std::numeric_limits<int64_t>::max() / 1024;

/// The amount that each label of a node adds to the rows [begin, end): bytes in a row of memory, cost in a row of a
/// stream.
struct Piece {
  int32_t begin = 0, end = 0;
  std::vector<int64_t> usage;
};

struct Node {
  std::vector<int64_t> costs; // by label
  std::vector<Piece> pieces;
};

/// The cost of two nodes' labels together is tables[table][label of from * labels of to + label of to].
struct Edge {
  int32_t from = 0, to = 0, table = 0;
};

/// The problem of minimising the costs of nodes and edges plus, for each window, the load of its busiest stream, such
/// that no row of memory takes more than its capacity. No number is negative. Edges may share a table.
struct Problem {
  std::vector<Node> nodes;
  std::vector<Edge> edges;
  std::vector<std::vector<int64_t>> tables;
  /// The bytes that the labels may take in each row of memory; these rows come first.
  std::vector<int64_t> capacity;
  /// The load that each stream carries under every solution. The row of a stream is capacity.size() + its index.
  std::vector<int64_t> load;
  /// The end of each window's streams, as an index into `load`; the first window begins at 0.
  std::vector<int32_t> windowEnd;
  /// The cost that every solution has.
  int64_t constant = 0;

  int32_t rowCount() const { return static_cast<int32_t>(capacity.size() + load.size()); }
};

/// The label of each node.
using Solution = std::vector<int32_t>;

struct Evaluation {
  /// The cost, at most kForbidden.
  int64_t cost = kForbidden;
  /// The most bytes by which a row of memory is above its capacity; negative or 0 where memory suffices.
  int64_t excess = 0;
  bool isFeasible() const { return cost < kForbidden && excess <= 0; }
};

/// Evaluates a solution in exact arithmetic. It must have a label for each node, within the node's range.
Evaluation evaluate(const Problem &problem, const Solution &solution);

/// Returns what each row takes under a solution, in bytes or cost.
std::vector<int64_t> rowUsage(const Problem &problem, const Solution &solution);

inline int64_t addCosts(int64_t a, int64_t b) { return a + b < kForbidden ? a + b : kForbidden; }

} // namespace windlass::search

#endif
