#include "TreeSearch.h"

#include <algorithm>
#include <cmath>

using namespace windlass::search;

namespace {
constexpr double kNot = static_cast<double>(kForbidden);
constexpr int kMostTries = 6;
constexpr size_t kNoises = 1 << 14;
} // namespace

TreeSearch::TreeSearch(const Model &model, const std::vector<double> &prices, const TreeSearchOptions &options)
    : m(model), options(options), random(options.seed), price(prices), firstPrice(prices), unary(model.cost),
      position(model.nodes(), -1), touches(model.nodes()), scratch(padded(model.mostLabels)),
      room(model.messageRoom()) {
  h.resize(static_cast<size_t>(options.treeNodes) * padded(m.mostLabels));
  noise.reserve(kNoises);
  for (size_t k = 0; k < kNoises; ++k)
    noise.push_back(-std::log(-std::log(random.uniform())));
}

void TreeSearch::setScale(double newScale) {
  scale = newScale;
  std::vector<double> prefix(m.rows + 1);
  for (int32_t r = 0; r < m.rows; ++r)
    prefix[r + 1] = prefix[r] + price[r] * (r < m.memoryRows ? scale : 1);
  unary = m.cost;
  for (int32_t i = 0; i < m.nodes(); ++i)
    for (int32_t p = m.pieceBegin[i]; p < m.pieceBegin[i + 1]; ++p) {
      const Model::ModelPiece &piece = m.pieces[p];
      double factor = prefix[piece.end] - prefix[piece.begin];
      if (factor > 0)
        addScaled(unary.data() + m.offset[i], m.usage.data() + piece.usage, factor, m.stride[i]);
    }
  work += static_cast<int64_t>(m.totalLabels) / kLanes + static_cast<int64_t>(m.pieces.size());
}

void TreeSearch::begin(const Solution &start) {
  label = start;
  Evaluation value = evaluate(m.problem, label);
  cost = value.cost;
  std::vector<int64_t> usage = rowUsage(m.problem, label);
  extra.assign(m.memoryRows, 0);
  std::vector<int64_t> room(m.rows, int64_t(1) << 61);
  isRaised = false;
  for (int32_t r = 0; r < m.memoryRows; ++r) {
    extra[r] = std::max<int64_t>(usage[r] - m.problem.capacity[r], 0);
    isRaised |= extra[r] > 0;
    room[r] = m.problem.capacity[r] + extra[r] - usage[r];
  }
  slack.assign(room);
  streams.assign(m.problem.load.begin(), m.problem.load.end());
  for (size_t s = 0; s < streams.size(); ++s)
    streams[s] += usage[m.memoryRows + s];
  windowCost = 0;
  windowCost = windowChange();
  best = kForbidden;
  isBestSaved = true;
  if (value.isFeasible()) {
    best = cost;
    bestLabels = label;
  }
}

/// Returns the amount by which the cost of the windows exceeds `windowCost`.
int64_t TreeSearch::windowChange() {
  int64_t sum = 0;
  int32_t stream = 0;
  for (int32_t end : m.problem.windowEnd) {
    int64_t busiest = 0;
    for (; stream < end; ++stream)
      busiest = std::max(busiest, streams[stream]);
    sum += busiest;
  }
  return sum - windowCost;
}

/// Lowers the ceiling of rows that take more than their capacity: they may not take more than now, and their prices
/// rise.
void TreeSearch::lowerCeiling() {
  std::vector<int64_t> room(m.rows, int64_t(1) << 61);
  double typical = 0;
  for (int32_t r = 0; r < m.memoryRows; ++r)
    typical = std::max(typical, price[r] * m.scale[r]);
  if (typical == 0)
    typical = 1e-6 * static_cast<double>(cost) + 1;
  isRaised = false;
  for (int32_t r = 0; r < m.memoryRows; ++r) {
    room[r] = slack[r];
    if (extra[r] == 0)
      continue;
    int64_t lowered = std::min(extra[r], std::max<int64_t>(room[r], 0));
    extra[r] -= lowered;
    room[r] -= lowered;
    if (extra[r] > 0) {
      isRaised = true;
      price[r] = std::max(price[r], 1e-4 * typical / m.scale[r]) * 1.3;
    }
  }
  slack.assign(room);
  if (isRaised)
    return;
  price = firstPrice;
  if (cost < best) {
    best = cost;
    isBestSaved = false;
  }
}

void TreeSearch::takeOut(int32_t i, int64_t sign) {
  for (int32_t p = m.pieceBegin[i]; p < m.pieceBegin[i + 1]; ++p) {
    const Model::ModelPiece &piece = m.pieces[p];
    int64_t amount = m.exactUsage[piece.usage + label[i]];
    if (amount == 0)
      continue;
    if (piece.begin >= m.memoryRows) {
      streams[piece.begin - m.memoryRows] -= sign * amount;
    } else {
      slack.add(piece.begin, piece.end, sign * amount);
      work += 6 + (piece.end - piece.begin) / (Slack::kBlock * kLanes / 2);
    }
  }
}

/// Whether no row overflows with node `i` at label `x`. Pieces of one node may overlap.
bool TreeSearch::roomFor(int32_t i, int32_t x) const {
  for (int32_t p = m.pieceBegin[i]; p < m.pieceBegin[i + 1]; ++p) {
    const Model::ModelPiece &piece = m.pieces[p];
    if (piece.begin < m.memoryRows && m.exactUsage[piece.usage + x] > 0 && slack.leastIn(piece.begin, piece.end) < 0)
      return false;
  }
  return true;
}

void TreeSearch::growTree(int32_t wanted) {
  tree.clear();
  parent.clear();
  up.clear();
  frontier.clear();
  touched.clear();
  auto insert = [&](int32_t i, int32_t parentPosition, const Arc *arc) {
    position[i] = static_cast<int32_t>(tree.size());
    tree.push_back(i);
    parent.push_back(parentPosition);
    up.push_back(arc);
    for (const Arc *a = m.arcsBegin(i); a != m.arcsEnd(i); ++a) {
      if (touches[a->other]++ == 0) {
        touched.push_back(a->other);
        frontier.push_back(a->other);
      }
    }
    work += (m.arcsEnd(i) - m.arcsBegin(i)) + 4;
  };
  insert(random.below(m.nodes()), -1, nullptr);
  while (static_cast<int32_t>(tree.size()) < wanted && !frontier.empty()) {
    int32_t k = random.below(static_cast<int32_t>(frontier.size()));
    int32_t i = frontier[k];
    frontier[k] = frontier.back();
    frontier.pop_back();
    if (touches[i] != 1 || position[i] >= 0)
      continue;
    const Arc *arc = m.arcsBegin(i);
    while (position[arc->other] < 0)
      ++arc;
    insert(i, position[arc->other], arc);
  }
}

/// Computes the cost of each label of the k-th node of the tree, given the nodes around the tree.
void TreeSearch::fillUnary(int32_t k) {
  int32_t i = tree[k], stride = m.stride[i];
  double *row = h.data() + treeOffset[k];
  std::copy_n(unary.data() + m.offset[i], stride, row);
  for (const Arc *arc = m.arcsBegin(i); arc != m.arcsEnd(i); ++arc)
    if (position[arc->other] < 0)
      addRow(row, arc->transposed + static_cast<size_t>(label[arc->other]) * stride, stride);
  work += ((m.arcsEnd(i) - m.arcsBegin(i)) + 2) * (1 + stride / kLanes);
  for (int32_t p = m.pieceBegin[i]; p < m.pieceBegin[i + 1]; ++p) {
    const Model::ModelPiece &piece = m.pieces[p];
    if (piece.begin >= m.memoryRows)
      continue;
    int64_t room = slack.leastIn(piece.begin, piece.end);
    const int64_t *usage = m.exactUsage.data() + piece.usage;
    for (int32_t x = 0; x < m.labels[i]; ++x)
      row[x] = usage[x] > room ? kNot : row[x];
    work += 6 + (piece.end - piece.begin) / (Slack::kBlock * kLanes) + stride / kLanes;
  }
}

void TreeSearch::sendUp(int32_t k) {
  const Arc *arc = up[k];
  int32_t width = m.stride[arc->other];
  m.send(scratch.data(), h.data() + treeOffset[k], *arc, tree[k], room.data());
  addRow(h.data() + treeOffset[parent[k]], scratch.data(), width);
  work += (arc->classes ? arc->classes->work() : m.labels[tree[k]] * width / kLanes) + 4;
}

/// Chooses, from the root down, the best label that fits given the parent's. Returns false when some node has none.
bool TreeSearch::choose(double temperature) {
  for (size_t k = 0; k < tree.size(); ++k) {
    int32_t i = tree[k], stride = m.stride[i], count = m.labels[i];
    double *row = h.data() + treeOffset[k];
    if (k > 0)
      addRow(row, up[k]->transposed + static_cast<size_t>(label[up[k]->other]) * stride, stride);
    if (temperature > 0) {
      size_t at = random.next();
      for (int32_t x = 0; x < count; ++x)
        row[x] -= temperature * noise[(at + x) % kNoises];
    }
    bool isPlaced = false;
    for (int tries = 0; tries < kMostTries && !isPlaced; ++tries) {
      int32_t x = static_cast<int32_t>(std::min_element(row, row + count) - row);
      if (row[x] >= kNot / 2)
        break;
      label[i] = x;
      takeOut(i, -1);
      isPlaced = roomFor(i, x);
      if (!isPlaced) {
        takeOut(i, 1);
        row[x] = kNot;
      }
    }
    work += 2 + stride / 2;
    if (!isPlaced) {
      // The nodes before this one have been put in; they are taken out, then all nodes get their old labels back.
      label[i] = oldLabel[k];
      for (size_t before = 0; before < k; ++before) {
        takeOut(tree[before], 1);
        label[tree[before]] = oldLabel[before];
      }
      for (size_t all = k; all < tree.size(); ++all)
        label[tree[all]] = oldLabel[all];
      for (int32_t node : tree)
        takeOut(node, -1);
      return false;
    }
  }
  return true;
}

/// Returns the change of the cost of nodes and edges from the old labels of the tree to the new ones.
int64_t TreeSearch::exactChange() const {
  int64_t change = 0;
  for (size_t k = 0; k < tree.size(); ++k) {
    int32_t i = tree[k];
    bool isSame = label[i] == oldLabel[k];
    if (!isSame)
      change += static_cast<int64_t>(m.cost[m.offset[i] + label[i]]) -
                static_cast<int64_t>(m.cost[m.offset[i] + oldLabel[k]]);
    for (const Arc *arc = m.arcsBegin(i); arc != m.arcsEnd(i); ++arc) {
      int32_t at = position[arc->other];
      if (at < 0) {
        if (!isSame)
          change += costAt(*arc, label[i]) - costAt(*arc, oldLabel[k]);
      } else if (at < static_cast<int32_t>(k)) {
        const double *table = arc->table;
        size_t width = m.stride[arc->other];
        change += static_cast<int64_t>(table[label[i] * width + label[arc->other]]) -
                  static_cast<int64_t>(table[oldLabel[k] * width + oldLabel[at]]);
      }
    }
  }
  return change;
}

void TreeSearch::undo() {
  for (int32_t node : tree)
    takeOut(node, 1);
  for (size_t k = 0; k < tree.size(); ++k)
    label[tree[k]] = oldLabel[k];
  for (int32_t node : tree)
    takeOut(node, -1);
}

void TreeSearch::move(double temperature) {
  double part = random.uniform();
  growTree(1 + static_cast<int32_t>((options.treeNodes - 1) * part * part));
  int32_t count = static_cast<int32_t>(tree.size());
  oldLabel.resize(count);
  treeOffset.resize(count);
  oldStreams = streams;
  size_t at = 0;
  for (int32_t k = 0; k < count; ++k) {
    oldLabel[k] = label[tree[k]];
    treeOffset[k] = at;
    at += m.stride[tree[k]];
    takeOut(tree[k], 1);
  }
  for (int32_t k = 0; k < count; ++k)
    fillUnary(k);
  for (int32_t k = count; k-- > 1;)
    sendUp(k);
  if (choose(temperature)) {
    int64_t change = exactChange();
    double energy = static_cast<double>(change);
    for (int32_t k = 0; k < count; ++k) {
      size_t row = m.offset[tree[k]];
      // Only prices: the part of the unary cost beyond the node's own cost.
      energy += (unary[row + label[tree[k]]] - m.cost[row + label[tree[k]]]) -
                (unary[row + oldLabel[k]] - m.cost[row + oldLabel[k]]);
    }
    int64_t window = 0;
    if (!streams.empty()) {
      window = windowChange();
      change += window;
      // The exact cost of the streams takes the place of their prices.
      energy += static_cast<double>(window);
      for (size_t stream = 0; stream < streams.size(); ++stream)
        energy -= price[m.memoryRows + stream] * static_cast<double>(streams[stream] - oldStreams[stream]);
    }
    // Costs differ by 1 at least; prices round.
    bool isTaken = energy <= 1e-6 || (temperature > 0 && random.uniform() < std::exp(-energy / temperature));
    if (isTaken) {
      if (change > 0 && !isBestSaved) {
        // The labels before this move are the best ones so far.
        newLabel.resize(count);
        for (int32_t k = 0; k < count; ++k) {
          newLabel[k] = label[tree[k]];
          label[tree[k]] = oldLabel[k];
        }
        bestLabels = label;
        isBestSaved = true;
        for (int32_t k = 0; k < count; ++k)
          label[tree[k]] = newLabel[k];
        work += m.nodes() / kLanes;
      }
      cost += change;
      windowCost += window;
      if (cost < best && !isRaised) {
        best = cost;
        isBestSaved = false;
      }
    } else {
      undo();
    }
  }
  for (int32_t i : tree)
    position[i] = -1;
  for (int32_t i : touched)
    touches[i] = 0;
}

Solution TreeSearch::run(const Solution &start, Meter &meter) {
  begin(start);
  constexpr int kStages = 200;
  constexpr double kScaleEnd = 0.9, kNoiseEnd = 0.95;
  double highest = options.temperature * static_cast<double>(std::min(cost, kForbidden));
  int stage = -1;
  int64_t nextCeiling = 0, moves = 0;
  double temperature = 0;
  while (!meter.isOver()) {
    double share = meter.share();
    if (static_cast<int>(share * kStages) != stage) {
      stage = static_cast<int>(share * kStages);
      temperature = share < kNoiseEnd ? highest * std::pow(1e-3, share / kNoiseEnd) : 0;
      setScale(isRaised ? 1 : std::max(0.0, 1 - share / kScaleEnd));
    }
    if (isRaised && moves >= nextCeiling) {
      lowerCeiling();
      setScale(isRaised ? 1 : std::max(0.0, 1 - share / kScaleEnd));
      nextCeiling = moves + 2 * m.nodes() / std::max(1, options.treeNodes / 4) + 10;
    }
    move(temperature);
    ++moves;
    meter.spend(work);
    work = 0;
  }
  if (!isBestSaved)
    bestLabels = label;
  return best < kForbidden ? bestLabels : Solution();
}
