// What an arena's bytes hold while commands run: the model behind sched-verify-commands. Plain C++, no IR.
#ifndef WINDLASS_SCHEDULE_MEMORYTIMELINE_H
#define WINDLASS_SCHEDULE_MEMORYTIMELINE_H

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace windlass::schedule {

/// Bytes [first, second).
using ByteRange = std::pair<int64_t, int64_t>;

/// Returns the ranges that a strided window touches, increasing and disjoint. A window of more than `limit` runs
/// becomes the one range that holds it, and `isExact` false.
std::vector<ByteRange> getByteRanges(int64_t offset, int64_t elementBytes, std::vector<int64_t> sizes,
                                     std::vector<int64_t> strides, bool &isExact, size_t limit = 1 << 14);

/// Returns whether two lists, each increasing and disjoint, share a byte.
bool overlap(const std::vector<ByteRange> &a, const std::vector<ByteRange> &b);

/// The order that streams and events guarantee for the commands of a rank, which all its arenas have in common.
class StreamOrder {
public:
  /// Begins a command on `stream`, which is the present one until the next begins.
  void beginCommand(int64_t stream);
  void record(int64_t event, int64_t stream);
  /// Makes `stream` wait for the event's last record. Returns what is wrong, or an empty text.
  std::string wait(int64_t event, int64_t stream);

  int64_t getStream() const { return stream; }
  /// Returns the number of the present command; commands count from 1.
  int64_t getNumber() const { return number; }
  /// Returns whether the present command runs after command `otherNumber` of `otherStream`; number 0 is before
  /// everything.
  bool isAfter(int64_t otherStream, int64_t otherNumber) const;

private:
  using Clock = std::map<int64_t, int64_t>;
  /// For each stream, how much of every stream is complete when its next command starts.
  std::map<int64_t, Clock> clocks;
  std::map<int64_t, Clock> events;
  int64_t stream = 0, number = 0;
};

/// The value that each byte of one arena holds, who wrote it and who reads it.
class MemoryTimeline {
public:
  /// Makes the timeline of an empty arena; `order` tells which command runs, and outlives the timeline.
  explicit MemoryTimeline(const StreamOrder &order) : order(&order) {}

  /// The owner of bytes that hold nothing.
  static constexpr int64_t kNothing = -1;

  /// Makes the range hold `owner`, written before everything else.
  void define(const ByteRange &range, int64_t owner);
  /// Forbids further reads of what the range holds; its earlier readers and writers still count.
  void forget(const ByteRange &range);
  /// Assigns to `owner`, as padding, the gaps of less than `alignment` bytes inside the range that do not hold it.
  void adoptPadding(const ByteRange &range, int64_t owner, int64_t alignment);

  /// Records what the present command does. Returns what is wrong, or an empty text.
  std::string read(const std::vector<ByteRange> &ranges, int64_t owner);
  std::string write(const std::vector<ByteRange> &ranges, int64_t owner);

private:
  struct Region {
    int64_t end = 0;
    int64_t owner = kNothing;
    /// The stream and the number of the command that wrote it last; number 0: before everything.
    int64_t writer = 0, written = 0;
    /// For each stream, in order, the number of the last command that read it since. There are few streams.
    std::vector<std::pair<int64_t, int64_t>> readers;
    void setReader(int64_t stream, int64_t number);
    bool isLike(const Region &other) const;
  };
  using Regions = std::map<int64_t, Region>;

  /// The first region that ends behind `position`, looked for from `hint` on, which is none that begins behind it.
  Regions::iterator find(int64_t position, Regions::iterator hint);
  /// Cuts regions so that `range` is made of whole ones. What no region covers gets an empty one. Returns the first;
  /// the hint is a region at or before the range, or the end where nothing is known.
  Regions::iterator cut(const ByteRange &range, Regions::iterator hint);
  Regions::iterator cut(const ByteRange &range) { return cut(range, regions.end()); }
  /// Merges a region with the one before it where they differ in nothing but their place. Returns the region that holds
  /// it then.
  Regions::iterator join(Regions::iterator it);

  const StreamOrder *order;
  Regions regions;
};

} // namespace windlass::schedule

#endif
