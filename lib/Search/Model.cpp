#include "Model.h"

#include <algorithm>
#include <map>
#include <numeric>

using namespace windlass::search;

static constexpr double kNot = static_cast<double>(kForbidden);

void Model::addTable(const Edge &edge, TablesFor purpose) {
  const std::vector<int64_t> &table = problem.tables[edge.table];
  int32_t height = labels[edge.from], width = labels[edge.to];
  std::optional<Classes> found = findClasses(table, height, width, kNot);
  classes.push_back(found);
  classes.push_back(found ? std::optional(found->transpose(width, kNot)) : std::nullopt);
  size_t at = tables.size();
  tables.resize(at + 2);
  if (found && purpose == TablesFor::messages)
    return;
  Doubles &forward = tables[at], &backward = tables[at + 1];
  forward.assign(static_cast<size_t>(height) * stride[edge.to], kNot);
  backward.assign(static_cast<size_t>(width) * stride[edge.from], kNot);
  // In blocks, whose rows and columns are both in the cache.
  constexpr int32_t kBlock = 16;
  for (int32_t top = 0; top < height; top += kBlock)
    for (int32_t left = 0; left < width; left += kBlock)
      for (int32_t x = top; x < std::min(top + kBlock, height); ++x)
        for (int32_t y = left; y < std::min(left + kBlock, width); ++y)
          forward[static_cast<size_t>(x) * stride[edge.to] + y] =
              backward[static_cast<size_t>(y) * stride[edge.from] + x] =
                  static_cast<double>(table[static_cast<size_t>(x) * width + y]);
}

Model::Model(const Problem &problem, TablesFor purpose) : problem(problem) {
  size_t count = problem.nodes.size();
  memoryRows = static_cast<int32_t>(problem.capacity.size());
  rows = problem.rowCount();
  std::vector<double> most(rows + 1);
  pieceBegin.push_back(0);
  for (const Node &node : problem.nodes) {
    int32_t own = static_cast<int32_t>(node.costs.size());
    labels.push_back(own);
    stride.push_back(padded(own));
    offset.push_back(totalLabels);
    totalLabels += stride.back();
    mostLabels = std::max(mostLabels, own);
    for (int32_t x = 0; x < stride.back(); ++x)
      cost.push_back(x < own ? static_cast<double>(node.costs[x]) : kNot);
    for (const Piece &piece : node.pieces) {
      pieces.push_back({piece.begin, piece.end, usage.size()});
      for (int32_t x = 0; x < stride.back(); ++x) {
        exactUsage.push_back(x < own ? piece.usage[x] : 0);
        usage.push_back(static_cast<double>(exactUsage.back()));
      }
      double largest = static_cast<double>(*std::max_element(piece.usage.begin(), piece.usage.end()));
      most[piece.begin] += largest;
      most[piece.end] -= largest;
      passWork += stride.back() / kLanes;
    }
    pieceBegin.push_back(static_cast<int32_t>(pieces.size()));
  }
  std::partial_sum(most.begin(), most.end(), most.begin());
  for (int32_t row = 0; row < rows; ++row)
    scale.push_back(row < memoryRows ? std::max({static_cast<double>(problem.capacity[row]), 1e-3 * most[row], 1.0})
                                     : std::max(static_cast<double>(problem.load[row - memoryRows]) + most[row], 1.0));

  std::map<std::pair<int32_t, int32_t>, size_t> oriented;
  for (const Edge &edge : problem.edges)
    if (oriented.insert({{edge.table, labels[edge.from]}, tables.size()}).second)
      addTable(edge, purpose);

  auto getClasses = [&](size_t table) { return classes[table] ? &*classes[table] : nullptr; };
  std::vector<std::vector<Arc>> earlier(count), later(count);
  for (size_t e = 0; e < problem.edges.size(); ++e) {
    const Edge &edge = problem.edges[e];
    size_t at = oriented[{edge.table, labels[edge.from]}];
    auto getTable = [&](size_t table) { return tables[table].empty() ? nullptr : tables[table].data(); };
    const double *table = getTable(at), *transposed = getTable(at + 1);
    size_t toFrom = totalMessages, toTo = totalMessages + stride[edge.from];
    totalMessages += stride[edge.from] + stride[edge.to];
    int32_t id = static_cast<int32_t>(e);
    (edge.to < edge.from ? earlier : later)[edge.from].push_back(
        {edge.to, id, table, transposed, getClasses(at), toFrom, toTo});
    (edge.from < edge.to ? earlier : later)[edge.to].push_back(
        {edge.from, id, transposed, table, getClasses(at + 1), toTo, toFrom});
    passWork += 4 + (classes[at] ? classes[at]->work() : labels[edge.from] * (stride[edge.to] / kLanes));
  }
  for (size_t i = 0; i < count; ++i) {
    arcBegin.push_back(static_cast<int32_t>(arcs.size()));
    arcs.insert(arcs.end(), earlier[i].begin(), earlier[i].end());
    arcMiddle.push_back(static_cast<int32_t>(arcs.size()));
    arcs.insert(arcs.end(), later[i].begin(), later[i].end());
    passWork += 4;
  }
  arcBegin.push_back(static_cast<int32_t>(arcs.size()));
  passWork += rows / kLanes;
}
