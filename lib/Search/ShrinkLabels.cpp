// Dominated labels, and nodes that two others decide.
#include "ShrinkGraph.h"

#include <algorithm>

using namespace windlass::search;

/// Whether `better`, under every choice of the other nodes, costs at most what `worse` costs and takes no more of any
/// row.
bool ShrinkGraph::dominates(int32_t i, int32_t better, int32_t worse, const std::vector<std::vector<int64_t>> &tables,
                            const std::vector<std::vector<int32_t>> &answers,
                            const std::vector<std::vector<char>> &isBanned) {
  const ShrinkNode &node = nodes[i];
  work -= static_cast<int64_t>(node.pieces.size() + node.edges.size()) + 1;
  for (const Piece &piece : node.pieces)
    if (piece.usage[better] > piece.usage[worse])
      return false;
  int64_t gain = node.costs[worse] - node.costs[better], gainThere = gain;
  // This seldom holds where the other nodes choose what suits `worse` best.
  for (size_t k = 0; k < node.edges.size(); ++k) {
    int32_t y = answers[k][worse], width = nodes[edges[node.edges[k]].other(i)].labels();
    if (y < 0)
      return true;
    int64_t b = tables[k][static_cast<size_t>(better) * width + y];
    if (b >= kForbidden)
      return false;
    gainThere += tables[k][static_cast<size_t>(worse) * width + y] - b;
  }
  if (gainThere < 0)
    return false;
  for (size_t k = 0; k < node.edges.size(); ++k) {
    int32_t j = edges[node.edges[k]].other(i), width = nodes[j].labels();
    const int64_t *a = tables[k].data() + static_cast<size_t>(worse) * width;
    const int64_t *b = tables[k].data() + static_cast<size_t>(better) * width;
    work -= width / 4 + 1;
    int64_t least = kForbidden;
    for (int32_t y = 0; y < width; ++y) {
      // Nothing is lost where `worse` is not allowed.
      bool matters = !isBanned[j][y] && a[y] < kForbidden;
      int64_t difference = !matters ? kForbidden : b[y] < kForbidden ? a[y] - b[y] : -kForbidden;
      least = difference < least ? difference : least;
    }
    if (least == -kForbidden)
      return false;
    gain += least;
  }
  return gain >= 0;
}

bool ShrinkGraph::dropDominated() {
  std::vector<std::vector<char>> isBanned(nodes.size());
  for (size_t i = 0; i < nodes.size(); ++i)
    isBanned[i].resize(nodes[i].labels());
  std::vector<std::vector<int64_t>> tables;
  // The label that the other node chooses where only this edge counts, by edge and label; -1 where nothing is allowed.
  std::vector<std::vector<int32_t>> answers;
  for (size_t i = 0; i < nodes.size() && work > 0; ++i) {
    ShrinkNode &node = nodes[i];
    if (!node.isAlive || node.labels() < 2)
      continue;
    int32_t id = static_cast<int32_t>(i), count = node.labels();
    tables.resize(node.edges.size());
    answers.resize(node.edges.size());
    for (size_t k = 0; k < node.edges.size(); ++k) {
      const ShrinkEdge &edge = edges[node.edges[k]];
      int32_t width = nodes[edge.other(id)].labels();
      tables[k].resize(static_cast<size_t>(count) * width);
      answers[k].assign(count, -1);
      for (int32_t x = 0; x < count; ++x)
        for (int32_t y = 0, least = -1; y < width; ++y) {
          int64_t *row = tables[k].data() + static_cast<size_t>(x) * width;
          row[y] = costOf(edge, id, x, y);
          if (!isBanned[edge.other(id)][y] && row[y] < (least < 0 ? kForbidden : row[least]))
            answers[k][x] = least = y;
        }
    }
    for (int32_t worse = 0; worse < count && work > 0; ++worse)
      for (int32_t better = 0; better < count && !isBanned[i][worse]; ++better)
        if (better != worse && !isBanned[i][better] && dominates(id, better, worse, tables, answers, isBanned))
          isBanned[i][worse] = 1;
  }
  return dropLabels(isBanned);
}

/// Eliminates a node without pieces and with at most two neighbours, which decide its label. The new table may not be
/// much larger than the tables that it replaces.
bool ShrinkGraph::eliminate(int32_t i) {
  ShrinkNode &node = nodes[i];
  if (!node.isAlive || !node.pieces.empty() || node.edges.size() > 2)
    return false;
  int32_t first = node.edges.empty() ? -1 : edges[node.edges[0]].other(i);
  int32_t second = node.edges.size() < 2 ? -1 : edges[node.edges[1]].other(i);
  int64_t rows = first < 0 ? 1 : nodes[first].labels(), columns = second < 0 ? 1 : nodes[second].labels();
  if (second >= 0 && rows * columns > 2 * node.labels() * (rows + columns))
    return false;
  if (rows * columns * node.labels() > work)
    return false;
  work -= rows * columns * node.labels();
  std::vector<int64_t> least(rows * columns);
  ShrinkStep step{i, first, second, static_cast<int32_t>(columns), std::vector<int32_t>(rows * columns)};
  for (int64_t x = 0; x < rows; ++x)
    for (int64_t y = 0; y < columns; ++y) {
      int64_t best = INT64_MAX;
      for (int32_t own = 0; own < node.labels(); ++own) {
        int64_t cost = node.costs[own];
        if (first >= 0)
          cost = addCosts(cost, costOf(edges[node.edges[0]], i, own, static_cast<int32_t>(x)));
        if (second >= 0)
          cost = addCosts(cost, costOf(edges[node.edges[1]], i, own, static_cast<int32_t>(y)));
        if (cost < best) {
          best = cost;
          step.map[x * columns + y] = own;
        }
      }
      least[x * columns + y] = best;
    }
  node.isAlive = false;
  while (!node.edges.empty())
    removeEdge(node.edges.back());
  steps.push_back(std::move(step));
  if (first < 0)
    problem.constant = addCosts(problem.constant, least[0]);
  else if (second < 0)
    for (int64_t x = 0; x < rows; ++x)
      nodes[first].costs[x] = addCosts(nodes[first].costs[x], least[x]);
  else
    addEdge(first, second, std::move(least));
  return true;
}

bool ShrinkGraph::eliminateLeaves() {
  bool changed = false;
  std::vector<int32_t> queue;
  for (size_t i = nodes.size(); i-- > 0;)
    queue.push_back(static_cast<int32_t>(i));
  while (!queue.empty()) {
    int32_t i = queue.back();
    queue.pop_back();
    std::vector<int32_t> neighbours;
    for (int32_t e : nodes[i].edges)
      neighbours.push_back(edges[e].other(i));
    if (!eliminate(i))
      continue;
    changed = true;
    queue.insert(queue.end(), neighbours.begin(), neighbours.end());
  }
  return changed;
}
