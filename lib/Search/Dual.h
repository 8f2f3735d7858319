// Lower bounds: sequential tree-reweighted messages (Kolmogorov, TPAMI 2006) on the costs plus prices of the rows.
// Every choice of messages and prices gives a valid bound.
#ifndef WINDLASS_LIB_SEARCH_DUAL_H
#define WINDLASS_LIB_SEARCH_DUAL_H

#include "Model.h"

#include <limits>

namespace windlass::search {

/// Returns the most that rounding may add to a bound of this size.
inline double roundingOf(double bound) { return 1e-3 + 1e-13 * (bound < 0 ? -bound : bound); }

/// A lower bound with its messages, prices and bans.
class Dual {
public:
  explicit Dual(const Model &model);

  const Model &model() const { return *m; }
  bool isBanned(int32_t i, int32_t x) const { return unary[m->offset[i] + x] >= kForbidden; }
  void ban(int32_t i, int32_t x) { unary[m->offset[i] + x] = static_cast<double>(kForbidden); }
  void clearBans() { unary = m->cost; }
  int32_t allowedLabels(int32_t i) const;

  /// The shadow price of a byte in each row of memory, at least 0, then of load in each row of a stream, where those of
  /// a window add up to 1.
  const std::vector<double> &prices() const { return price; }
  void setPrices(std::vector<double> prices);
  /// The cost of each label with its prices; kForbidden and more where it is banned.
  const Doubles &pricedCosts() const { return priced; }
  /// Takes bans and prices into account before the next pass.
  void updatePrices();

  /// Passes over the nodes in their order and returns the bound. Chooses labels one after the other, each given the
  /// earlier ones, when `decoded` is not null.
  double forward(Solution *decoded = nullptr);
  /// Passes against their order and returns the bound. Bans a label when, by the bound of the forward pass before,
  /// every solution with it costs more than `most`; adds the number of these to `banned`.
  double backward(double forwardBound = 0, double most = std::numeric_limits<double>::infinity(),
                  int64_t *banned = nullptr);

  /// Sets `usage` to what the rows take when each node's labels are weighted by how good their marginals are, after a
  /// backward pass: the direction in which prices raise the bound. At temperature 0 it is a subgradient of the bound;
  /// above 0, labels that are nearly as good get a part of the weight too.
  void softUsage(double temperature, std::vector<double> &usage);

  /// The amount by which each label is worse than the best of its node, after a backward pass.
  Doubles marginals;

  Doubles messages;

private:
  double outgoing(const Arc *begin, const Arc *end, double weight, int32_t i);

  const Model *m;
  Doubles unary, priced, row, scaled, score, weights, room;
  std::vector<double> price, prefix;
  double constant = 0;
};

/// The rule by which prices move: by factors, or by steps whose length the gap suggests. Neither is better everywhere.
enum class PriceRule { Exponentiated, Polyak };

/// The shadow prices of the rows while they move to the best bound.
class Prices {
public:
  /// Begins with these prices.
  Prices(const Model &model, PriceRule rule, const std::vector<double> &prices);

  /// Sets the length of steps: it falls by a factor of a hundred from progress 0 to 1.
  void setProgress(double progress);
  /// Returns the temperature for `Dual::softUsage`, which decides where prices go; it falls with the length of steps.
  double temperature(double bound, double target) const;
  /// Takes the bound at the current prices, after `Dual::backward`, and moves the prices. `target` is the cost of the
  /// best solution known, or more.
  void step(Dual &dual, double bound, double target);
  /// Moves the prices so that labels chosen one after the other, which take `usage`, fit; the bound falls a little.
  void steer(const std::vector<double> &usage, double bound, double target);
  void returnToBest() { price = bestPrice; }
  const std::vector<double> &current() const { return price; }
  const std::vector<double> &best() const { return bestPrice; }
  double bestBound() const { return bestValue; }

private:
  void move(double bound, double target);
  void stepExponentiated(double bound);
  void stepPolyak(double bound, double target);
  void stepStreams();

  const Model &m;
  PriceRule rule;
  std::vector<double> price, bestPrice, violation, usage;
  double bestValue = -std::numeric_limits<double>::infinity();
  double part = 1; // of the longest steps
  bool hasMass = false;
};

/// Sets `usage` to what the rows take, as doubles.
void usageOf(const Model &model, const Solution &solution, std::vector<double> &usage);
/// Whether no row of memory takes more than its capacity.
bool fits(const Model &model, const std::vector<double> &usage);

} // namespace windlass::search

#endif
