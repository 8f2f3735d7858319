#include "Branch.h"

#include <algorithm>

using namespace windlass::search;

namespace {

constexpr int kSteps = 40, kTrialPasses = 3, kCandidates = 6;
constexpr size_t kBatch = 4;
/// The bytes of open subproblems above which the newest is taken instead of the best, so that the list stops growing.
constexpr size_t kMostBytes = size_t(3) << 30;

std::shared_ptr<BranchState> save(const Dual &dual) {
  const Model &m = dual.model();
  auto state = std::make_shared<BranchState>();
  state->messages.assign(dual.messages.begin(), dual.messages.end());
  state->prices = dual.prices();
  state->banned.resize(m.totalLabels);
  for (int32_t i = 0; i < m.nodes(); ++i)
    for (int32_t x = 0; x < m.labels[i]; ++x)
      state->banned[m.offset[i] + x] = dual.isBanned(i, x);
  return state;
}

size_t bytesOf(const BranchState &state) {
  return state.messages.size() * sizeof(float) + state.prices.size() * sizeof(double) + state.banned.size() / 8;
}

void load(const BranchState &state, Dual &dual) {
  const Model &m = dual.model();
  dual.messages.assign(state.messages.begin(), state.messages.end());
  dual.clearBans();
  for (int32_t i = 0; i < m.nodes(); ++i)
    for (int32_t x = 0; x < m.labels[i]; ++x)
      if (state.banned[m.offset[i] + x])
        dual.ban(i, x);
  dual.setPrices(state.prices);
}

/// Returns the allowed labels of a node: those that take least of dear rows first; where no row is dear, the best
/// first.
std::vector<int32_t> orderLabels(const Dual &dual, int32_t i, const std::vector<double> &prefix, double &spread) {
  const Model &m = dual.model();
  std::vector<std::pair<double, int32_t>> keys;
  double least = 0, most = 0;
  for (int32_t x = 0; x < m.labels[i]; ++x) {
    if (dual.isBanned(i, x))
      continue;
    double key = 0;
    for (int32_t p = m.pieceBegin[i]; p < m.pieceBegin[i + 1]; ++p)
      key += m.usage[m.pieces[p].usage + x] * (prefix[m.pieces[p].end] - prefix[m.pieces[p].begin]);
    least = keys.empty() ? key : std::min(least, key);
    most = keys.empty() ? key : std::max(most, key);
    keys.push_back({key, x});
  }
  spread = most - least;
  if (spread <= 0)
    for (auto &[key, x] : keys)
      key = dual.marginals[m.offset[i] + x];
  std::sort(keys.begin(), keys.end());
  std::vector<int32_t> labels;
  for (auto &[key, x] : keys)
    labels.push_back(x);
  return labels;
}

/// Returns the bound when `dropped` are banned from a node's labels and only `kept` of them stay.
double tryLabels(const Dual &dual, int32_t i, const std::vector<int32_t> &dropped, Dual &scratch, Meter &meter) {
  scratch = dual;
  for (int32_t x : dropped)
    scratch.ban(i, x);
  scratch.updatePrices();
  double bound = 0;
  for (int pass = 0; pass < kTrialPasses; ++pass) {
    scratch.forward();
    bound = scratch.backward();
  }
  meter.spend(kTrialPasses * 2 * dual.model().passWork);
  return bound;
}

} // namespace

BranchAndBound::BranchAndBound(const Dual &root, int64_t seed) : seed(seed) {
  auto open = std::make_shared<Open>();
  open->bound = -std::numeric_limits<double>::infinity();
  open->state = save(root);
  push(std::move(open));
}

void BranchAndBound::push(std::shared_ptr<Open> open) {
  open->number = sequence++;
  // Each counts half, because most states are shared by two subproblems.
  bytes += bytesOf(*open->state) / 2;
  queue.push_back(std::move(open));
}

std::vector<std::shared_ptr<BranchAndBound::Open>> BranchAndBound::takeBatch() {
  bool takesNewest = bytes > kMostBytes;
  size_t count = std::min(kBatch, queue.size());
  std::partial_sort(queue.begin(), queue.begin() + count, queue.end(), [&](const auto &a, const auto &b) {
    if (takesNewest || a->bound == b->bound)
      return a->number > b->number;
    return a->bound < b->bound;
  });
  std::vector<std::shared_ptr<Open>> batch(queue.begin(), queue.begin() + count);
  queue.erase(queue.begin(), queue.begin() + count);
  for (const auto &open : batch)
    bytes -= bytesOf(*open->state) / 2;
  return batch;
}

void BranchAndBound::put(const std::shared_ptr<Open> &open, const Incumbent &incumbent) {
  if (!open->isProcessed) {
    if (open->bound <= incumbent.mostBound())
      push(open);
    return;
  }
  ++processed;
  for (const std::shared_ptr<Open> &child : open->children)
    if (child->bound <= incumbent.mostBound())
      push(child);
}

double BranchAndBound::bound() const {
  double least = std::numeric_limits<double>::infinity();
  for (const auto &open : queue)
    least = std::min(least, open->bound);
  return least;
}

/// Returns the solution that is left where each node has one label.
static Solution readOnlySolution(const Dual &dual) {
  const Model &m = dual.model();
  Solution solution(m.nodes());
  for (int32_t i = 0; i < m.nodes(); ++i)
    for (int32_t x = 0; x < m.labels[i]; ++x)
      if (!dual.isBanned(i, x))
        solution[i] = x;
  return solution;
}

void BranchAndBound::process(Open &open, Dual &dual, Incumbent &incumbent, Meter &meter) const {
  const Model &m = dual.model();
  if (open.bound > incumbent.mostBound()) {
    open.isProcessed = true;
    return;
  }
  load(*open.state, dual);
  for (int32_t x : open.labels)
    dual.ban(open.node, x);
  dual.updatePrices();
  Prices prices(m, PriceRule::Polyak, dual.prices());
  if (fixLabels(dual, prices, incumbent, kSteps, meter)) {
    open.isProcessed = true;
    return;
  }
  if (meter.isOver())
    return; // stays open
  open.isProcessed = true;
  double bound = dual.forward();
  dual.backward();
  bound = std::max({bound, open.bound, prices.bestBound()});

  std::vector<double> prefix(m.rows + 1);
  for (int32_t r = 0; r < m.rows; ++r)
    prefix[r + 1] = prefix[r] + dual.prices()[r];
  std::vector<std::pair<double, int32_t>> candidates;
  for (int32_t i = 0; i < m.nodes(); ++i) {
    if (dual.allowedLabels(i) < 2)
      continue;
    double spread;
    orderLabels(dual, i, prefix, spread);
    candidates.push_back({-spread, i});
  }
  if (candidates.empty()) {
    incumbent.offer(m.problem, readOnlySolution(dual));
    return;
  }
  std::sort(candidates.begin(), candidates.end());
  Random random(static_cast<uint64_t>(seed) + static_cast<uint64_t>(open.number) * 977);
  for (size_t k = kCandidates / 2; k < candidates.size() && k < kCandidates; ++k)
    std::swap(candidates[k], candidates[k + random.below(static_cast<int32_t>(candidates.size() - k))]);
  candidates.resize(std::min<size_t>(candidates.size(), kCandidates));

  double bestScore = -1, most = incumbent.mostBound();
  std::vector<std::shared_ptr<Open>> children;
  Dual scratch = dual;
  for (const auto &candidate : candidates) {
    int32_t i = candidate.second;
    double spread;
    std::vector<int32_t> labels = orderLabels(dual, i, prefix, spread);
    std::vector<int32_t> sides[2];
    for (size_t k = 0; k < labels.size(); ++k)
      sides[2 * k >= labels.size()].push_back(labels[k]);
    double bounds[2];
    for (int side = 0; side < 2; ++side)
      bounds[side] = std::max(bound, tryLabels(dual, i, sides[1 - side], scratch, meter));
    double gains[2] = {std::min(bounds[0], most + 1) - bound, std::min(bounds[1], most + 1) - bound};
    double score = std::max(gains[0], 1e-6) * std::max(gains[1], 1e-6);
    if (score <= bestScore)
      continue;
    bestScore = score;
    children.clear();
    for (int side = 0; side < 2; ++side) {
      if (bounds[side] > most)
        continue;
      auto child = std::make_shared<Open>();
      child->bound = bounds[side];
      child->node = i;
      child->labels = sides[1 - side];
      children.push_back(std::move(child));
    }
  }
  std::shared_ptr<const BranchState> state = save(dual);
  for (const auto &child : children)
    child->state = state;
  open.children = std::move(children);
}
