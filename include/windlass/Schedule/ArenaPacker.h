// Places live intervals of known size in one arena. Plain C++: the problem and its solution, no IR.
#ifndef WINDLASS_SCHEDULE_ARENAPACKER_H
#define WINDLASS_SCHEDULE_ARENAPACKER_H

#include <cstdint>
#include <vector>

namespace windlass::schedule {

/// Something that occupies `bytes` from time `first` to time `last`, both included.
struct LiveInterval {
  int64_t bytes = 0;
  int64_t first = 0;
  int64_t last = 0;
};

struct Packing {
  /// The offset of each interval in bytes from the arena's start, a multiple of the alignment.
  std::vector<int64_t> offsets;
  /// The end of the highest interval.
  int64_t bytes = 0;
  /// The bytes of the largest set of intervals that live at one time: no packing is smaller.
  int64_t largestLiveSet = 0;
  /// The first time at which that set lives.
  int64_t peak = 0;
};

/// Packs the intervals so that those that share a time share no byte. Sizes are rounded up to `alignment`.
/// Deterministic: several orders are placed first-fit (by size, by size times length, by begin, and by length, mended a
/// few times) until one takes no more than the largest live set, and the smallest result wins.
Packing packIntervals(const std::vector<LiveInterval> &intervals, int64_t alignment);

} // namespace windlass::schedule

#endif
