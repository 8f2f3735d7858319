// Looks for multipliers and messages that prove a good bound, in floating point: whatever it finds is proven anew in
// integers.
#include "windlass/Search/Certificate.h"

#include "Dual.h"
#include "windlass/Search/Meter.h"

#include <algorithm>
#include <cmath>
#include <optional>

using namespace windlass::search;

namespace {

/// The most steps of one rule: in problems of this kind further ones gain nothing.
constexpr int kMostSteps = 1000;
/// The number of steps from which both rules are worth their work.
constexpr int kManySteps = 40;
/// The share of the work that looks for prices; messages for the best of them get the rest.
constexpr double kPriceShare = 0.6;
/// The most steps in which messages settle.
constexpr int kLastSteps = 10;

int64_t toFixed(double value, int bits) {
  constexpr double most = static_cast<double>(Certificate::kMost);
  return std::llround(std::clamp(std::ldexp(value, bits), -most, most));
}

class Certifier {
public:
  Certifier(const Problem &original, int64_t target)
      : original(original), folded(foldLoops(original)), problem(folded ? *folded : original), target(target) {}

  Certificate certify(int64_t workLimit) {
    Model model(problem, TablesFor::messages);
    Dual dual(model);
    dual.setPrices(roundPrices(dual.prices()));
    // Problems far from the target need no messages.
    keep();
    if (best.bound >= target || problem.nodes.empty())
      return best;
    // The second rule finds better prices in many steps, the first in few.
    bool hasManySteps = workLimit / 2 >= kManySteps * 2 * model.passWork;
    for (PriceRule rule : {PriceRule::Exponentiated, PriceRule::Polyak}) {
      Meter meter(hasManySteps ? workLimit / 2 : workLimit);
      raise(model, rule, meter);
      if (best.bound >= target || !hasManySteps)
        break;
    }
    return best;
  }

private:
  /// Returns the problem with edges from a node to itself folded into its costs, because the dual has no such edges;
  /// nothing where there are none: tables may be large.
  static std::optional<Problem> foldLoops(const Problem &original) {
    auto isLoop = [](const Edge &edge) { return edge.from == edge.to; };
    if (std::none_of(original.edges.begin(), original.edges.end(), isLoop))
      return std::nullopt;
    Problem problem = original;
    for (const Edge &edge : problem.edges) {
      std::vector<int64_t> &costs = problem.nodes[edge.from].costs;
      for (size_t x = 0; isLoop(edge) && x < costs.size(); ++x)
        costs[x] = addCosts(costs[x], problem.tables[edge.table][x * costs.size() + x]);
    }
    problem.edges.erase(std::remove_if(problem.edges.begin(), problem.edges.end(), isLoop), problem.edges.end());
    return problem;
  }

  void raise(const Model &model, PriceRule rule, Meter &meter) {
    Dual dual(model);
    Prices prices(model, rule, dual.prices());
    const double aim = static_cast<double>(std::min(target, kForbidden));
    for (int step = 0; step < kMostSteps && meter.share() < kPriceShare && prices.bestBound() < aim; ++step) {
      dual.forward();
      double bound = dual.backward();
      prices.setProgress(std::max(meter.share() / kPriceShare, static_cast<double>(step) / kMostSteps));
      prices.step(dual, bound, aim);
      dual.setPrices(prices.current());
      meter.spend(2 * model.passWork + 2 * model.rows);
    }
    dual.setPrices(roundPrices(prices.best()));
    // Messages follow the prices that were best. Each step raises the bound until none does, so only the messages of
    // the last step are written down and proven.
    double reached = -INFINITY;
    for (int step = 0; step < kLastSteps && reached < aim && (step == 0 || !meter.isOver()); ++step) {
      dual.forward();
      double bound = dual.backward();
      meter.spend(2 * model.passWork);
      if (bound <= reached)
        break;
      reached = bound;
    }
    keepMessages(model, dual);
    meter.spend(2 * model.passWork); // which takes as long as a step
  }

  /// Sets the prices of the kept certificate, and returns them as it represents them.
  std::vector<double> roundPrices(const std::vector<double> &prices) {
    size_t memoryRows = problem.capacity.size();
    int64_t most = (Certificate::kMost - (int64_t(1) << 58)) / static_cast<int64_t>(memoryRows + 1);
    found.prices.clear();
    for (size_t row = 0; row < memoryRows; ++row)
      found.prices.push_back(std::clamp<int64_t>(toFixed(prices[row], Certificate::kPriceBits), 0, most));
    size_t row = memoryRows;
    for (int32_t end : problem.windowEnd) {
      // The remainder that rounding leaves in a window goes to its first stream.
      size_t first = row;
      int64_t left = int64_t(1) << Certificate::kPriceBits;
      for (; row < memoryRows + static_cast<size_t>(end); ++row) {
        int64_t weight = std::clamp<int64_t>(toFixed(prices[row], Certificate::kPriceBits), 0, left);
        found.prices.push_back(weight);
        left -= weight;
      }
      found.prices[first] += left;
    }
    std::vector<double> rounded;
    for (int64_t price : found.prices)
      rounded.push_back(std::ldexp(static_cast<double>(price), -Certificate::kPriceBits));
    return rounded;
  }

  /// Writes a forward pass of the dual as the cost that each edge hands to its two nodes: to the later node, the
  /// message that is sent; to the earlier node, the message that it had, less its part of everything that this node
  /// knows. What is left at nodes and edges is then at least 0, but for what the pass adds to the bound.
  void keepMessages(const Model &m, const Dual &dual) {
    Doubles messages = dual.messages;
    std::vector<std::array<std::vector<int64_t>, 2>> given(problem.edges.size());
    Doubles row(padded(m.mostLabels)), scaled(row.size()), room(m.messageRoom());
    auto give = [&](const Arc &arc, int32_t i, const double *values) {
      std::vector<int64_t> &to = given[arc.edge][problem.edges[arc.edge].from == i ? 0 : 1];
      to.resize(m.labels[i]);
      for (int32_t x = 0; x < m.labels[i]; ++x)
        to[x] = problem.nodes[i].costs[x] < kForbidden ? toFixed(values[x], Certificate::kMessageBits) : 0;
    };
    for (int32_t i = 0; i < m.nodes(); ++i) {
      const Arc *begin = m.arcsBegin(i), *middle = m.arcsMiddle(i), *end = m.arcsEnd(i);
      int32_t stride = m.stride[i];
      std::copy_n(dual.pricedCosts().data() + m.offset[i], stride, row.data());
      for (const Arc *arc = begin; arc != end; ++arc)
        addRow(row.data(), messages.data() + arc->in, stride);
      subtractLeast(row.data(), stride);
      double weight = 1.0 / std::max<double>(1.0, std::max(middle - begin, end - middle));
      for (const Arc *arc = middle; arc != end; ++arc) {
        scaleAndSubtract(scaled.data(), row.data(), weight, messages.data() + arc->in, stride);
        double *out = messages.data() + arc->out;
        m.send(out, scaled.data(), *arc, i, room.data());
        subtractLeast(out, m.stride[arc->other]);
        for (int32_t x = 0; x < stride; ++x)
          scaled[x] = -scaled[x];
        give(*arc, i, scaled.data());
        give(*arc, arc->other, out);
      }
    }
    // An edge from a node to itself hands over its whole cost.
    found.messages.clear();
    size_t next = 0;
    for (const Edge &edge : original.edges) {
      if (edge.from != edge.to) {
        found.messages.push_back(std::move(given[next++]));
        continue;
      }
      size_t labels = problem.nodes[edge.from].costs.size();
      std::array<std::vector<int64_t>, 2> &loop = found.messages.emplace_back();
      loop[1].resize(labels);
      for (size_t x = 0; x < labels; ++x) {
        int64_t cost = original.tables[edge.table][x * labels + x];
        loop[0].push_back(cost < kForbidden ? cost << Certificate::kMessageBits : 0);
      }
    }
    keep();
  }

  /// Keeps the certificate that was found where it proves more than the present one.
  void keep() {
    llvm::Expected<int64_t> bound = proveBound(original, found);
    if (!bound) {
      // Nothing that could be given up would be worth more.
      llvm::consumeError(bound.takeError());
      return;
    }
    if (*bound > best.bound || best.prices.empty()) {
      best = found;
      best.bound = *bound;
    }
  }

  const Problem &original;
  const std::optional<Problem> folded;
  const Problem &problem;
  int64_t target;
  Certificate found, best;
};

} // namespace

Certificate windlass::search::certify(const Problem &problem, int64_t target, int64_t workLimit) {
  return Certifier(problem, target).certify(workLimit);
}
