#include "Crossings.h"

#include <algorithm>

using namespace windlass::interpreter;

std::optional<std::vector<RankValues>> Crossings::meet(size_t position, const RankValues &own) {
  left.resize(given.size());
  size_t number = left[position] - dropped;
  if (given[position].size() == number)
    given[position].push_back(own);
  std::vector<RankValues> all;
  for (const std::deque<RankValues> &values : given) {
    if (values.size() <= number)
      return std::nullopt;
    all.push_back(values[number]);
  }
  ++left[position];
  if (*std::min_element(left.begin(), left.end()) > dropped) {
    ++dropped;
    for (std::deque<RankValues> &values : given)
      values.pop_front();
  }
  return all;
}
