#include "Crossings.h"

#include "llvm/ADT/STLExtras.h"

#include <algorithm>

using namespace windlass::interpreter;

std::optional<std::vector<RankValues>> Crossings::meet(llvm::ArrayRef<int64_t> positions, int64_t position,
                                                       const RankValues &own) {
  Group &group = groups[positions.vec()];
  group.given.resize(positions.size());
  group.left.resize(positions.size());
  size_t member = llvm::find(positions, position) - positions.begin();
  size_t number = group.left[member] - group.dropped;
  if (group.given[member].size() == number)
    group.given[member].push_back(own);
  std::vector<RankValues> all;
  for (const std::deque<RankValues> &values : group.given) {
    if (values.size() <= number)
      return std::nullopt;
    all.push_back(values[number]);
  }
  ++group.left[member];
  if (*std::min_element(group.left.begin(), group.left.end()) > group.dropped) {
    ++group.dropped;
    for (std::deque<RankValues> &values : group.given)
      values.pop_front();
  }
  return all;
}
