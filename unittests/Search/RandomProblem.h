// Small problems of every kind, and their optimum by trying everything.
#ifndef WINDLASS_UNITTESTS_SEARCH_RANDOMPROBLEM_H
#define WINDLASS_UNITTESTS_SEARCH_RANDOMPROBLEM_H

#include "windlass/Search/Problem.h"

#include <random>

namespace windlass::search {

/// Makes a problem of up to 14 nodes, with rows of memory and windows of streams. Some tables forbid, some are sums,
/// some are bijections.
inline Problem makeRandomProblem(uint64_t seed) {
  std::mt19937_64 random(seed);
  auto below = [&](int64_t count) { return static_cast<int64_t>(random() % static_cast<uint64_t>(count)); };
  Problem problem;
  int64_t nodes = 1 + below(14), choices = 1, most = nodes > 10 ? 2 : nodes > 6 ? 3 : 5;
  int32_t times = static_cast<int32_t>(below(7));
  bool hasWindows = below(3) == 0;
  for (int64_t window = 0; hasWindows && window < 1 + below(2); ++window) {
    for (int64_t stream = 0; stream < 1 + below(3); ++stream)
      problem.load.push_back(below(5));
    if (problem.load.size() > (problem.windowEnd.empty() ? 0 : static_cast<size_t>(problem.windowEnd.back())))
      problem.windowEnd.push_back(static_cast<int32_t>(problem.load.size()));
  }
  int64_t typical = 0;
  for (int64_t i = 0; i < nodes; ++i) {
    Node node;
    int64_t labels = 1 + below(most);
    if (choices * labels > 1 << 12)
      labels = 1;
    choices *= labels;
    int64_t scale = below(4) == 0 ? 3 : 100;
    for (int64_t x = 0; x < labels; ++x)
      node.costs.push_back(below(12) == 0 ? kForbidden : below(scale));
    for (int64_t pieces = times ? below(3) : 0; pieces > 0; --pieces) {
      int32_t begin = static_cast<int32_t>(below(times)), end = begin + 1 + static_cast<int32_t>(below(times - begin));
      Piece piece{begin, end, {}};
      for (int64_t x = 0; x < labels; ++x)
        piece.usage.push_back(below(10));
      typical += 4;
      node.pieces.push_back(piece);
    }
    for (size_t stream = 0; stream < problem.load.size(); ++stream)
      if (below(3) == 0) {
        Piece piece{times + static_cast<int32_t>(stream), times + static_cast<int32_t>(stream) + 1, {}};
        for (int64_t x = 0; x < labels; ++x)
          piece.usage.push_back(below(40));
        node.pieces.push_back(piece);
      }
    problem.nodes.push_back(node);
  }
  for (int32_t row = 0; row < times; ++row)
    problem.capacity.push_back(below(typical + 8));
  for (int64_t edges = below(2 * nodes + 1); edges > 0; --edges) {
    Edge edge{static_cast<int32_t>(below(nodes)), static_cast<int32_t>(below(nodes)),
              static_cast<int32_t>(problem.tables.size())};
    size_t rows = problem.nodes[edge.from].costs.size(), columns = problem.nodes[edge.to].costs.size();
    std::vector<int64_t> table(rows * columns), sum(rows);
    int64_t kind = below(6), turn = below(5);
    for (int64_t &part : sum)
      part = below(30);
    for (size_t x = 0; x < rows; ++x)
      for (size_t y = 0; y < columns; ++y) {
        int64_t &cost = table[x * columns + y];
        if (kind == 0)
          cost = (x + static_cast<size_t>(turn)) % columns == y ? below(20) : kForbidden;
        else if (kind == 1)
          cost = sum[x] + 7 * static_cast<int64_t>(y);
        else if (kind == 2)
          cost = x == y ? 0 : below(50);
        else
          cost = kind == 3 && below(4) == 0 ? kForbidden : below(50);
      }
    problem.tables.push_back(table);
    problem.edges.push_back(edge);
  }
  problem.constant = below(3);
  return problem;
}

/// Returns the least cost of a solution that fits; kForbidden where there is none.
inline int64_t tryEverything(const Problem &problem, Solution *best = nullptr) {
  Solution solution(problem.nodes.size(), 0);
  int64_t least = kForbidden;
  while (true) {
    Evaluation value = evaluate(problem, solution);
    if (value.isFeasible() && value.cost < least) {
      least = value.cost;
      if (best)
        *best = solution;
    }
    size_t i = 0;
    while (i < solution.size() && ++solution[i] == static_cast<int32_t>(problem.nodes[i].costs.size()))
      solution[i++] = 0;
    if (i == solution.size())
      return least;
  }
}

} // namespace windlass::search

#endif
