// Costs of a step in nanoseconds, from picoseconds of work that it does several times.
#ifndef WINDLASS_LIB_PLANNER_STEPCOSTS_H
#define WINDLASS_LIB_PLANNER_STEPCOSTS_H

#include "windlass/Search/Problem.h"

#include <algorithm>
#include <cmath>

namespace windlass::planner {

/// Returns the nanoseconds of `count` times `picoseconds`, rounded; search::kForbidden where the product would not be
/// an allowed cost.
inline int64_t toCost(int64_t count, int64_t picoseconds) {
  if (picoseconds >= search::kForbidden)
    return search::kForbidden;
  double cost = static_cast<double>(count) * static_cast<double>(picoseconds) / 1000;
  return cost < static_cast<double>(search::kForbidden) ? std::llround(cost) : search::kForbidden;
}

/// Returns the whole nanoseconds in `count` times `picoseconds`, at most search::kForbidden.
inline int64_t toWholeCost(int64_t count, int64_t picoseconds) {
  __int128 cost = static_cast<__int128>(count) * picoseconds / 1000;
  return static_cast<int64_t>(std::min<__int128>(cost, search::kForbidden));
}

/// Returns `count` times a cost; search::kForbidden where the product would not be an allowed cost.
inline int64_t multiplyCost(int64_t count, int64_t cost) {
  return cost >= search::kForbidden / std::max<int64_t>(count, 1) ? search::kForbidden : count * cost;
}

} // namespace windlass::planner

#endif
