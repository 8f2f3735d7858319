#include "windlass/Schedule/ArenaPacker.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <numeric>

using namespace windlass::schedule;

/// The number of orders that are tried, beginning with the one by length.
static constexpr int kRounds = 5;

namespace {

struct Placed {
  int64_t offset, end;
  int64_t first, last;
};

/// The intervals placed so far, by offset, so that gaps are met from the bottom up. Nearly all time goes into passing
/// over dense intervals, and most intervals are short compared with those of the stash: so there is also a list for
/// each part of the time, of the intervals that live then. The list of all is sorted when a long interval needs it.
class Shelf {
public:
  Shelf(int64_t first, int64_t last, size_t count)
      : first(first), partLength((last - first) / kParts + 1), parts(kParts) {
    all.reserve(count);
  }

  int64_t findLowestGap(const LiveInterval &interval) {
    size_t from = partOf(interval.first), to = partOf(interval.last);
    if (to - from > 1) {
      if (sorted < all.size())
        sortAll();
      return findLowestGap(interval, all, none);
    }
    return findLowestGap(interval, parts[from], to > from ? parts[to] : none);
  }

  void place(const LiveInterval &interval, int64_t offset) {
    Placed placed = {offset, offset + interval.bytes, interval.first, interval.last};
    all.push_back(placed);
    for (size_t part = partOf(interval.first); part <= partOf(interval.last); ++part)
      insert(parts[part], placed);
  }

private:
  using List = std::vector<Placed>;
  static constexpr size_t kParts = 32;

  size_t partOf(int64_t time) const { return static_cast<size_t>((time - first) / partLength); }

  static bool isLower(const Placed &a, const Placed &b) { return a.offset < b.offset; }

  static void insert(List &list, const Placed &placed) {
    list.insert(std::upper_bound(list.begin(), list.end(), placed, isLower), placed);
  }

  void sortAll() {
    auto fresh = all.begin() + static_cast<int64_t>(sorted);
    std::sort(fresh, all.end(), isLower);
    List merged;
    merged.reserve(all.capacity());
    std::merge(all.begin(), fresh, fresh, all.end(), std::back_inserter(merged), isLower);
    all = std::move(merged);
    sorted = all.size();
  }

  /// Finds the lowest gap among the intervals that are in at least one of the lists.
  static int64_t findLowestGap(const LiveInterval &interval, const List &left, const List &right) {
    int64_t candidate = 0;
    for (size_t i = 0, k = 0; i < left.size() || k < right.size();) {
      bool isLeft = k == right.size() || (i < left.size() && left[i].offset <= right[k].offset);
      const Placed &other = isLeft ? left[i++] : right[k++];
      if (other.last < interval.first || interval.last < other.first)
        continue;
      if (other.offset >= candidate + interval.bytes)
        break;
      candidate = std::max(candidate, other.end);
    }
    return candidate;
  }

  int64_t first, partLength;
  const List none;
  List all;
  /// How many of `all`, from the first on, are in order.
  size_t sorted = 0;
  std::vector<List> parts;
};

/// Places every interval of `order` in turn at the lowest gap that holds it among those placed so far. Returns the end
/// of the highest.
int64_t placeInOrder(const std::vector<LiveInterval> &intervals, const std::vector<size_t> &order,
                     std::vector<int64_t> &offsets) {
  int64_t first = intervals.front().first, last = intervals.front().last, top = 0;
  for (const LiveInterval &interval : intervals) {
    first = std::min(first, interval.first);
    last = std::max(last, interval.last);
  }
  Shelf shelf(first, last, order.size());
  for (size_t index : order) {
    const LiveInterval &interval = intervals[index];
    offsets[index] = shelf.findLowestGap(interval);
    shelf.place(interval, offsets[index]);
    top = std::max(top, offsets[index] + interval.bytes);
  }
  return top;
}

/// Finds the largest set of intervals that live at one time, and the first such time.
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

Packing windlass::schedule::packIntervals(const std::vector<LiveInterval> &intervals, int64_t alignment) {
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
  // An interval that ends above the largest live set was placed too late: it moves half of the way up in the order, a
  // few times.
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
