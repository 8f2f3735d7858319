// Lower bounds: sequential tree-reweighted messages (Kolmogorov, TPAMI 2006) on the costs plus prices of the rows.
// Every choice of messages and prices gives a valid bound.
#ifndef WINDLASS_LIB_SEARCH_DUAL_H
#define WINDLASS_LIB_SEARCH_DUAL_H

#include "Model.h"

#include <limits>

namespace windlass::search {

/// What rounding may add to a bound of this size.
inline double roundingOf(double bound) { return 1e-3 + 1e-13 * (bound < 0 ? -bound : bound); }

class Dual {
public:
  explicit Dual(const Model &model);

  const Model &model() const { return *m; }
  bool isBanned(int32_t i, int32_t x) const { return unary[m->offset[i] + x] >= kForbidden; }
  void ban(int32_t i, int32_t x) { unary[m->offset[i] + x] = static_cast<double>(kForbidden); }
  void clearBans() { unary = m->cost; }
  int32_t allowedLabels(int32_t i) const;

  /// Of bytes in rows of memory, at least 0; of load in rows of streams, where those of a window add up to 1.
  const std::vector<double> &prices() const { return price; }
  void setPrices(std::vector<double> prices);
  /// Cost of a label with its prices; kForbidden and more where it is banned.
  const Doubles &pricedCosts() const { return priced; }
  /// To be called after bans, before the next pass.
  void updatePrices();

  /// A pass over the nodes in their order. Returns the bound. Chooses labels one after the other, each given the
  /// earlier ones, when `decoded` is not null.
  double forward(Solution *decoded = nullptr);
  /// Against their order. A label is banned when, by the bound of the forward pass before, every solution with it costs
  /// more than `most`; counts those.
  double backward(double forwardBound = 0, double most = std::numeric_limits<double>::infinity(),
                  int64_t *banned = nullptr);

  /// By how much a label is worse than the best of its node, after a backward pass.
  Doubles marginals;

  Doubles messages;

private:
  double outgoing(const Arc *begin, const Arc *end, double weight, int32_t i);

  const Model *m;
  Doubles unary, priced, row, scaled, score;
  std::vector<double> price, prefix;
  double constant = 0;
};

/// How prices move: by factors, or by steps as long as the gap suggests. Neither is better everywhere.
enum class PriceRule { Exponentiated, Polyak };

class Prices {
public:
  Prices(const Model &model, PriceRule rule);

  /// Begins anew from these prices.
  void reset(const std::vector<double> &prices);
  /// Takes the bound at the current prices and what the rows take under the labels chosen there; moves the prices.
  /// `target` is the cost of the best solution known, or more.
  void step(double bound, const std::vector<double> &usage, double target);
  const std::vector<double> &current() const { return price; }
  const std::vector<double> &best() const { return bestPrice; }
  double bestBound() const { return bestValue; }
  /// How often the step was made smaller since the bound last rose by a part of the gap that counts.
  int stalls() const { return stallCount; }
  void setPatience(int steps) { patience = steps; }
  void setRate(double newRate) { rate = newRate; }

private:
  void stepExponentiated(const std::vector<double> &usage);
  void stepPolyak(double bound, const std::vector<double> &usage, double target);
  void stepStreams(const std::vector<double> &usage);

  const Model &m;
  PriceRule rule;
  std::vector<double> price, bestPrice, violation;
  double bestValue = -std::numeric_limits<double>::infinity(), markValue = bestValue;
  double rate = 0;
  int sinceBest = 0, stallCount = 0, patience = 60;
  bool hasMass = false;
};

/// What the rows take, as doubles.
void usageOf(const Model &model, const Solution &solution, std::vector<double> &usage);
/// Whether no row of memory takes more than its capacity.
bool fits(const Model &model, const std::vector<double> &usage);

} // namespace windlass::search

#endif
