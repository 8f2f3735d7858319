#include "Knapsack.h"

#include "llvm/ADT/STLExtras.h"

#include <limits>
#include <numeric>

using namespace windlass::peers;

static constexpr int64_t kMostSteps = 100'000;

namespace {

class Knapsack {
public:
  Knapsack(llvm::ArrayRef<KnapsackItem> items, double wanted) : items(items), wanted(wanted), order(items.size()) {
    // By price for what is saved; of items that save equally much, the cheaper one first.
    std::iota(order.begin(), order.end(), 0);
    llvm::sort(order, [&](size_t a, size_t b) {
      return std::pair(items[a].price * items[b].saved, a) < std::pair(items[b].price * items[a].saved, b);
    });
    taken.resize(items.size());
  }

  std::vector<bool> run() {
    visit(0, 0, 0);
    return best;
  }

private:
  /// Tries the items from `next` on, where those before cost and save so much.
  void visit(size_t next, double price, double saved);
  /// Whether an item before `next` that saves as much and is no dearer was left out: then the other one may stay out.
  bool isBehindLeftOut(size_t next) const;
  double getLeastPrice(size_t next, double missing) const;

  llvm::ArrayRef<KnapsackItem> items;
  double wanted;
  std::vector<size_t> order;
  std::vector<bool> taken, best;
  double bestPrice = std::numeric_limits<double>::infinity();
  int64_t steps = 0;
};

} // namespace

bool Knapsack::isBehindLeftOut(size_t next) const {
  for (size_t i = next; i-- > 0;) {
    const KnapsackItem &other = items[order[i]], &own = items[order[next]];
    if (other.saved >= own.saved && other.price <= own.price && !taken[order[i]])
      return true;
  }
  return false;
}

/// With a part of the last item.
double Knapsack::getLeastPrice(size_t next, double missing) const {
  double price = 0;
  for (; missing > 0 && next < order.size(); ++next) {
    const KnapsackItem &item = items[order[next]];
    price += item.price * std::min(1.0, missing / item.saved);
    missing -= item.saved;
  }
  return missing > 0 ? std::numeric_limits<double>::infinity() : price;
}

void Knapsack::visit(size_t next, double price, double saved) {
  if (saved >= wanted) {
    if (price < bestPrice) {
      bestPrice = price;
      best = taken;
    }
    return;
  }
  if (++steps > kMostSteps || price + getLeastPrice(next, wanted - saved) >= bestPrice)
    return;
  // An item goes in first, so that the first answer is the greedy one.
  const KnapsackItem &item = items[order[next]];
  if (!isBehindLeftOut(next)) {
    taken[order[next]] = true;
    visit(next + 1, price + item.price, saved + item.saved);
    taken[order[next]] = false;
  }
  visit(next + 1, price, saved);
}

std::vector<bool> windlass::peers::chooseItems(llvm::ArrayRef<KnapsackItem> items, double wanted) {
  return Knapsack(items, wanted).run();
}
