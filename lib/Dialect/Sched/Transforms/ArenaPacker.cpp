#include "windlass/Dialect/Sched/Transforms/ArenaPacker.h"

#include <algorithm>
#include <map>
#include <numeric>

using namespace windlass::sched;

/// So many orders are made of the one by length.
static constexpr int kRounds = 5;

namespace {

struct Placed {
  int64_t offset, end;
  int64_t first, last;
};

/// Lowest gap that holds an interval among those placed so far, for every interval of `order` in turn.
int64_t placeInOrder(const std::vector<LiveInterval> &intervals, const std::vector<size_t> &order,
                     std::vector<int64_t> &offsets) {
  // By offset, so that gaps are met from the bottom up. Nearly all time goes into passing over them: they lie densely.
  std::vector<Placed> placed;
  placed.reserve(order.size());
  int64_t top = 0;
  for (size_t index : order) {
    const LiveInterval &interval = intervals[index];
    int64_t candidate = 0;
    for (const Placed &other : placed) {
      if (other.last < interval.first || interval.last < other.first)
        continue;
      if (other.offset >= candidate + interval.bytes)
        break;
      candidate = std::max(candidate, other.end);
    }
    offsets[index] = candidate;
    auto behind = std::upper_bound(placed.begin(), placed.end(), candidate,
                                   [](int64_t offset, const Placed &other) { return offset < other.offset; });
    placed.insert(behind, {candidate, candidate + interval.bytes, interval.first, interval.last});
    top = std::max(top, candidate + interval.bytes);
  }
  return top;
}

/// The largest set of intervals that live at one time, and the first such time.
void findPeak(const std::vector<LiveInterval> &intervals, Packing &packing) {
  std::map<int64_t, int64_t> changes;
  for (const LiveInterval &interval : intervals) {
    changes[interval.first] += interval.bytes;
    changes[interval.last + 1] -= interval.bytes;
  }
  int64_t live = 0;
  for (auto [time, change] : changes)
    if ((live += change) > packing.largestLiveSet) {
      packing.largestLiveSet = live;
      packing.peak = time;
    }
}

} // namespace

Packing windlass::sched::packIntervals(const std::vector<LiveInterval> &intervals, int64_t alignment) {
  std::vector<LiveInterval> rounded = intervals;
  for (LiveInterval &interval : rounded)
    interval.bytes = (interval.bytes + alignment - 1) / alignment * alignment;

  Packing best;
  best.offsets.assign(intervals.size(), 0);
  findPeak(rounded, best);
  if (intervals.empty())
    return best;

  auto length = [&](size_t i) { return rounded[i].last - rounded[i].first; };
  auto sortBy = [&](auto before) {
    std::vector<size_t> order(rounded.size());
    std::iota(order.begin(), order.end(), 0);
    std::sort(order.begin(), order.end(), [&](size_t a, size_t b) { return before(a, b) || (!before(b, a) && a < b); });
    return order;
  };
  auto place = [&](const std::vector<size_t> &order) {
    std::vector<int64_t> offsets(rounded.size());
    int64_t bytes = placeInOrder(rounded, order, offsets);
    if (best.bytes == 0 || bytes < best.bytes) {
      best.bytes = bytes;
      best.offsets = offsets;
    }
    return offsets;
  };
  place(sortBy([&](size_t a, size_t b) { return rounded[a].bytes > rounded[b].bytes; }));
  if (best.bytes > best.largestLiveSet)
    place(sortBy([&](size_t a, size_t b) {
      return static_cast<double>(rounded[a].bytes) * (length(a) + 1) >
             static_cast<double>(rounded[b].bytes) * (length(b) + 1);
    }));
  if (best.bytes > best.largestLiveSet)
    place(sortBy([&](size_t a, size_t b) { return rounded[a].first < rounded[b].first; }));
  // What came to lie too high was placed too late: it moves up half of the way, a few times.
  std::vector<size_t> order = sortBy([&](size_t a, size_t b) {
    return length(a) != length(b) ? length(a) > length(b) : rounded[a].bytes > rounded[b].bytes;
  });
  std::vector<size_t> rank(rounded.size());
  for (int round = 0; round < kRounds && best.bytes > best.largestLiveSet; ++round) {
    std::vector<int64_t> offsets = place(order);
    for (size_t i = 0; i < order.size(); ++i)
      rank[order[i]] = offsets[order[i]] + rounded[order[i]].bytes > best.largestLiveSet ? i / 2 : i;
    order = sortBy([&](size_t a, size_t b) { return rank[a] < rank[b]; });
  }
  return best;
}
