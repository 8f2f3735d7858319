// Where rows of a table repeat. Plain C++, no IR.
#ifndef WINDLASS_SCHEDULE_FINDREPEAT_H
#define WINDLASS_SCHEDULE_FINDREPEAT_H

#include <algorithm>
#include <cstddef>

namespace windlass::schedule {

/// The most rows of a repeat's body.
constexpr size_t kMaxPeriod = 64;

/// `turns` runs of `period` rows each; one turn: no repeat.
struct Repeat {
  size_t period = 1, turns = 1;
};

/// Finds the repeat from row `begin` of `size` on that saves the most: it takes a row for itself and one for each row
/// of its body. `continues(i, period)` says whether row i, `period` behind another of the repeat, may be in it.
template <class Continues> Repeat findRepeat(size_t begin, size_t size, Continues continues) {
  Repeat best;
  size_t bestSaved = 0;
  for (size_t period = 1; period <= std::min(kMaxPeriod, (size - begin) / 2); ++period) {
    size_t end = begin + period;
    while (end < size && continues(end, period))
      ++end;
    size_t turns = (end - begin) / period;
    if (turns < 2 || (turns - 1) * period - 1 <= bestSaved)
      continue;
    best = {period, turns};
    bestSaved = (turns - 1) * period - 1;
  }
  return best;
}

} // namespace windlass::schedule

#endif
