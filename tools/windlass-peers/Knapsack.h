// Which of many things to pay for, so that enough is saved.
#ifndef WINDLASS_TOOLS_WINDLASS_PEERS_KNAPSACK_H
#define WINDLASS_TOOLS_WINDLASS_PEERS_KNAPSACK_H

#include "llvm/ADT/ArrayRef.h"

#include <vector>

namespace windlass::peers {

struct KnapsackItem {
  /// Both above 0.
  double price, saved;
};

/// Returns the items whose prices add up to the least and which save at least `wanted` together; nothing where all
/// together save less. Searches by branch and bound: where that takes more than a fixed number of steps, the best that
/// was found until then, which is no worse than taking items by price for what they save.
std::vector<bool> chooseItems(llvm::ArrayRef<KnapsackItem> items, double wanted);

} // namespace windlass::peers

#endif
