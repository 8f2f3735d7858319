#include "ShrinkGraph.h"

#include "llvm/ADT/Hashing.h"

#include <algorithm>
#include <numeric>
#include <unordered_map>

using namespace windlass::search;

ShrinkGraph::ShrinkGraph(const Problem &original, int64_t work) : taken(original.rowCount() + 1), work(work) {
  problem.capacity = original.capacity;
  problem.load = original.load;
  problem.windowEnd = original.windowEnd;
  problem.constant = original.constant;
  for (const Node &node : original.nodes)
    nodes.push_back({node.costs, node.pieces, {}, true});
  for (const Edge &edge : original.edges)
    edges.push_back({edge.from, edge.to, original.tables[edge.table], true});
  for (ShrinkNode &node : nodes)
    tidyPieces(node);
  connect();
}

/// Makes the intervals of pieces disjoint, and takes out of them what every label takes.
void ShrinkGraph::tidyPieces(ShrinkNode &node) {
  std::vector<Piece> &pieces = node.pieces;
  std::sort(pieces.begin(), pieces.end(),
            [](const Piece &a, const Piece &b) { return std::tie(a.begin, a.end) < std::tie(b.begin, b.end); });
  size_t kept = 0;
  for (size_t p = 0; p < pieces.size(); ++p) {
    if (kept && pieces[kept - 1].begin == pieces[p].begin && pieces[kept - 1].end == pieces[p].end) {
      for (size_t x = 0; x < node.costs.size(); ++x)
        pieces[kept - 1].usage[x] += pieces[p].usage[x];
    } else {
      if (kept != p)
        pieces[kept] = std::move(pieces[p]);
      ++kept;
    }
  }
  pieces.resize(kept);
  for (Piece &piece : pieces) {
    int64_t least = *std::min_element(piece.usage.begin(), piece.usage.end());
    if (least == 0)
      continue;
    for (int64_t &usage : piece.usage)
      usage -= least;
    taken[piece.begin] += least;
    taken[piece.end] -= least;
  }
  pieces.erase(std::remove_if(pieces.begin(), pieces.end(),
                              [](const Piece &piece) {
                                return piece.begin >= piece.end ||
                                       *std::max_element(piece.usage.begin(), piece.usage.end()) == 0;
                              }),
               pieces.end());
}

void ShrinkGraph::connect() {
  std::vector<std::pair<uint64_t, int32_t>> order;
  for (size_t e = 0; e < edges.size(); ++e) {
    ShrinkEdge &edge = edges[e];
    if (!edge.isAlive)
      continue;
    if (edge.from == edge.to) {
      ShrinkNode &node = nodes[edge.from];
      for (int32_t x = 0; x < node.labels(); ++x)
        node.costs[x] = addCosts(node.costs[x], edge.table[static_cast<size_t>(x) * node.labels() + x]);
      edge.isAlive = false;
      continue;
    }
    auto [low, high] = std::minmax(edge.from, edge.to);
    order.push_back({static_cast<uint64_t>(low) << 32 | static_cast<uint32_t>(high), static_cast<int32_t>(e)});
  }
  std::sort(order.begin(), order.end());
  for (size_t k = 1; k < order.size(); ++k) {
    if (order[k].first != order[k - 1].first)
      continue;
    // The later edge keeps the sum: the next parallel one is compared with it.
    ShrinkEdge &gone = edges[order[k - 1].second], &kept = edges[order[k].second];
    for (int32_t x = 0; x < nodes[kept.from].labels(); ++x)
      for (int32_t y = 0; y < nodes[kept.to].labels(); ++y) {
        int64_t &cost = kept.table[static_cast<size_t>(x) * nodes[kept.to].labels() + y];
        cost = addCosts(cost, costOf(gone, kept.from, x, y));
      }
    gone.isAlive = false;
  }
  edges.erase(std::remove_if(edges.begin(), edges.end(), [](const ShrinkEdge &edge) { return !edge.isAlive; }),
              edges.end());
  for (ShrinkNode &node : nodes)
    node.edges.clear();
  for (size_t e = 0; e < edges.size(); ++e)
    for (int32_t node : {edges[e].from, edges[e].to})
      nodes[node].edges.push_back(static_cast<int32_t>(e));
}

void ShrinkGraph::removeEdge(int32_t e) {
  edges[e].isAlive = false;
  edges[e].table = {};
  for (int32_t node : {edges[e].from, edges[e].to}) {
    std::vector<int32_t> &list = nodes[node].edges;
    list.erase(std::find(list.begin(), list.end(), e));
  }
}

void ShrinkGraph::addEdge(int32_t from, int32_t to, std::vector<int64_t> table) {
  for (int32_t e : nodes[from].edges) {
    ShrinkEdge &edge = edges[e];
    if (edge.other(from) != to)
      continue;
    for (int32_t x = 0; x < nodes[from].labels(); ++x)
      for (int32_t y = 0; y < nodes[to].labels(); ++y) {
        size_t index = edge.from == from ? static_cast<size_t>(x) * nodes[to].labels() + y
                                         : static_cast<size_t>(y) * nodes[from].labels() + x;
        edge.table[index] = addCosts(edge.table[index], table[static_cast<size_t>(x) * nodes[to].labels() + y]);
      }
    return;
  }
  int32_t e = static_cast<int32_t>(edges.size());
  edges.push_back({from, to, std::move(table), true});
  nodes[from].edges.push_back(e);
  nodes[to].edges.push_back(e);
}

bool ShrinkGraph::dropLabels(const std::vector<std::vector<char>> &isBanned) {
  std::vector<std::vector<int32_t>> kept(nodes.size());
  bool changed = false;
  for (size_t i = 0; i < nodes.size(); ++i) {
    ShrinkNode &node = nodes[i];
    if (!node.isAlive)
      continue;
    for (int32_t x = 0; x < node.labels(); ++x)
      if (!isBanned[i][x])
        kept[i].push_back(x);
    if (kept[i].empty())
      isInfeasible = true;
  }
  if (isInfeasible)
    return true;
  for (ShrinkEdge &edge : edges) {
    const std::vector<int32_t> &rows = kept[edge.from], &columns = kept[edge.to];
    if (!edge.isAlive || rows.size() * columns.size() == edge.table.size())
      continue;
    size_t width = nodes[edge.to].costs.size(), next = 0;
    for (int32_t x : rows)
      for (int32_t y : columns)
        edge.table[next++] = edge.table[x * width + y];
    edge.table.resize(next);
  }
  for (size_t i = 0; i < nodes.size(); ++i) {
    ShrinkNode &node = nodes[i];
    if (!node.isAlive || kept[i].size() == node.costs.size())
      continue;
    changed = true;
    auto keep = [&](std::vector<int64_t> &values) {
      for (size_t k = 0; k < kept[i].size(); ++k)
        values[k] = values[kept[i][k]];
      values.resize(kept[i].size());
    };
    keep(node.costs);
    for (Piece &piece : node.pieces)
      keep(piece.usage);
    tidyPieces(node);
    int32_t id = static_cast<int32_t>(i);
    steps.push_back({id, id, -1, 1, std::move(kept[i])});
  }
  return changed;
}

/// Drops labels that some neighbour allows no label with (arc consistency).
bool ShrinkGraph::dropUnsupported() {
  std::vector<std::vector<char>> isBanned(nodes.size());
  std::vector<char> isQueued(nodes.size(), 1), isStrict(edges.size());
  std::vector<int32_t> queue;
  for (size_t i = nodes.size(); i-- > 0;) {
    isBanned[i].resize(nodes[i].labels());
    for (int32_t x = 0; x < nodes[i].labels(); ++x)
      isBanned[i][x] = nodes[i].costs[x] >= kForbidden;
    if (nodes[i].isAlive)
      queue.push_back(static_cast<int32_t>(i));
  }
  for (size_t e = 0; e < edges.size(); ++e)
    isStrict[e] = edges[e].isAlive && *std::max_element(edges[e].table.begin(), edges[e].table.end()) >= kForbidden;
  while (!queue.empty()) {
    int32_t i = queue.back();
    queue.pop_back();
    isQueued[i] = 0;
    for (int32_t e : nodes[i].edges) {
      if (!isStrict[e])
        continue;
      int32_t j = edges[e].other(i);
      bool changed = false;
      for (int32_t y = 0; y < nodes[j].labels(); ++y) {
        if (isBanned[j][y])
          continue;
        bool isSupported = false;
        for (int32_t x = 0; x < nodes[i].labels() && !isSupported; ++x)
          isSupported = !isBanned[i][x] && costOf(edges[e], i, x, y) < kForbidden;
        if (!isSupported)
          isBanned[j][y] = changed = true;
      }
      if (changed && !isQueued[j]) {
        isQueued[j] = 1;
        queue.push_back(j);
      }
    }
  }
  return dropLabels(isBanned);
}

bool ShrinkGraph::foldSingles() {
  bool changed = false;
  for (size_t i = 0; i < nodes.size(); ++i) {
    ShrinkNode &node = nodes[i];
    if (!node.isAlive || node.labels() != 1)
      continue;
    int32_t id = static_cast<int32_t>(i);
    while (!node.edges.empty()) {
      int32_t e = node.edges.back(), j = edges[e].other(id);
      for (int32_t y = 0; y < nodes[j].labels(); ++y)
        nodes[j].costs[y] = addCosts(nodes[j].costs[y], costOf(edges[e], id, 0, y));
      removeEdge(e);
    }
    problem.constant = addCosts(problem.constant, node.costs[0]);
    // Its pieces are zero, because what every label takes has been taken out.
    node.isAlive = false;
    steps.push_back({id, -1, -1, 1, {0}});
    changed = true;
  }
  return changed;
}

/// Folds edges whose table is the sum of a row and a column into their nodes.
bool ShrinkGraph::foldSums() {
  bool changed = false;
  for (size_t e = 0; e < edges.size(); ++e) {
    ShrinkEdge &edge = edges[e];
    if (!edge.isAlive)
      continue;
    ShrinkNode &from = nodes[edge.from], &to = nodes[edge.to];
    size_t width = to.costs.size();
    bool isSum = *std::max_element(edge.table.begin(), edge.table.end()) < kForbidden;
    for (size_t x = 1; isSum && x < from.costs.size(); ++x) {
      int64_t difference = edge.table[x * width] - edge.table[0];
      for (size_t y = 1; isSum && y < width; ++y)
        isSum = edge.table[x * width + y] - edge.table[y] == difference;
    }
    if (!isSum)
      continue;
    // The constant goes to the two parts such that neither becomes negative.
    int64_t least = *std::min_element(edge.table.begin(), edge.table.begin() + width);
    for (size_t y = 0; y < width; ++y)
      to.costs[y] = addCosts(to.costs[y], edge.table[y] - least);
    size_t column = std::min_element(edge.table.begin(), edge.table.begin() + width) - edge.table.begin();
    for (size_t x = 0; x < from.costs.size(); ++x)
      from.costs[x] = addCosts(from.costs[x], edge.table[x * width + column]);
    removeEdge(static_cast<int32_t>(e));
    changed = true;
  }
  return changed;
}

bool ShrinkGraph::isBijection(const ShrinkEdge &edge, std::vector<int32_t> &map) const {
  size_t count = nodes[edge.from].costs.size();
  if (nodes[edge.to].costs.size() != count)
    return false;
  map.assign(count, -1);
  std::vector<char> isTaken(count);
  for (size_t x = 0; x < count; ++x)
    for (size_t y = 0; y < count; ++y) {
      if (edge.table[x * count + y] >= kForbidden)
        continue;
      if (map[x] >= 0 || isTaken[y])
        return false;
      map[x] = static_cast<int32_t>(y);
      isTaken[y] = 1;
    }
  return std::find(map.begin(), map.end(), -1) == map.end();
}

/// Joins nodes whose labels determine each other into one, with the labels of the first of them.
bool ShrinkGraph::joinBijections() {
  std::vector<std::vector<int32_t>> mapOf(edges.size());
  bool any = false;
  for (size_t e = 0; e < edges.size(); ++e) {
    if (!edges[e].isAlive)
      continue;
    if (isBijection(edges[e], mapOf[e]))
      any = true;
    else
      mapOf[e].clear();
  }
  if (!any)
    return false;
  std::vector<int32_t> root(nodes.size(), -1);
  std::vector<std::vector<int32_t>> labelOf(nodes.size()); // by label of the root
  for (size_t start = 0; start < nodes.size(); ++start) {
    if (!nodes[start].isAlive || root[start] >= 0)
      continue;
    ShrinkNode &joined = nodes[start];
    root[start] = static_cast<int32_t>(start);
    labelOf[start].resize(joined.labels());
    std::iota(labelOf[start].begin(), labelOf[start].end(), 0);
    std::vector<int32_t> queue{static_cast<int32_t>(start)};
    while (!queue.empty()) {
      int32_t i = queue.back();
      queue.pop_back();
      for (int32_t e : nodes[i].edges) {
        int32_t j = edges[e].other(i);
        if (mapOf[e].empty() || root[j] >= 0)
          continue;
        std::vector<int32_t> across = mapOf[e];
        if (edges[e].from != i)
          for (size_t x = 0; x < across.size(); ++x)
            across[mapOf[e][x]] = static_cast<int32_t>(x);
        root[j] = static_cast<int32_t>(start);
        for (int32_t label : labelOf[i])
          labelOf[j].push_back(across[label]);
        auto take = [&](const std::vector<int64_t> &values) {
          std::vector<int64_t> result;
          for (int32_t label : labelOf[j])
            result.push_back(values[label]);
          return result;
        };
        std::vector<int64_t> costs = take(nodes[j].costs);
        for (size_t x = 0; x < costs.size(); ++x)
          joined.costs[x] = addCosts(joined.costs[x], costs[x]);
        for (const Piece &piece : nodes[j].pieces)
          joined.pieces.push_back({piece.begin, piece.end, take(piece.usage)});
        steps.push_back({j, static_cast<int32_t>(start), -1, 1, labelOf[j]});
        queue.push_back(j);
      }
    }
  }
  for (ShrinkEdge &edge : edges) {
    if (!edge.isAlive || (root[edge.from] == edge.from && root[edge.to] == edge.to))
      continue;
    std::vector<int64_t> table;
    table.reserve(edge.table.size());
    for (int32_t x : labelOf[edge.from])
      for (int32_t y : labelOf[edge.to])
        table.push_back(edge.table[static_cast<size_t>(x) * nodes[edge.to].labels() + y]);
    edge.table = std::move(table);
  }
  for (ShrinkEdge &edge : edges)
    if (edge.isAlive) {
      edge.from = root[edge.from];
      edge.to = root[edge.to];
    }
  for (size_t i = 0; i < nodes.size(); ++i) {
    if (!nodes[i].isAlive)
      continue;
    if (root[i] == static_cast<int32_t>(i))
      tidyPieces(nodes[i]);
    else
      nodes[i].isAlive = false;
  }
  connect();
  return true;
}

Shrunk ShrinkGraph::finish() {
  Shrunk result;
  result.isInfeasible = isInfeasible;
  result.originalNodes = nodes.size();
  if (isInfeasible)
    return result;
  result.steps = std::move(steps);
  result.problem = std::move(problem);
  std::vector<int32_t> number(nodes.size(), -1);
  for (size_t i = 0; i < nodes.size(); ++i) {
    if (!nodes[i].isAlive)
      continue;
    number[i] = static_cast<int32_t>(result.nodes.size());
    result.nodes.push_back(static_cast<int32_t>(i));
    result.problem.nodes.push_back({std::move(nodes[i].costs), std::move(nodes[i].pieces)});
  }
  std::unordered_map<uint64_t, std::vector<int32_t>> known;
  std::vector<std::vector<int64_t>> &tables = result.problem.tables;
  for (ShrinkEdge &edge : edges) {
    if (!edge.isAlive)
      continue;
    std::vector<int32_t> &alike = known[llvm::hash_combine_range(edge.table.begin(), edge.table.end())];
    auto found = std::find_if(alike.begin(), alike.end(), [&](int32_t t) { return tables[t] == edge.table; });
    int32_t index = static_cast<int32_t>(tables.size());
    if (found != alike.end()) {
      index = *found;
    } else {
      alike.push_back(index);
      tables.push_back(std::move(edge.table));
    }
    result.problem.edges.push_back({number[edge.from], number[edge.to], index});
  }
  return result;
}
