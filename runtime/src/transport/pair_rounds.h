// The pairs of a collective on their way through a staging area of limited size.
#ifndef WINDLASS_SRC_TRANSPORT_PAIR_ROUNDS_H
#define WINDLASS_SRC_TRANSPORT_PAIR_ROUNDS_H

#include "windlass/rt/communicator.h"

#include <algorithm>

namespace windlass::rt::detail {

/// A stretch of a pair's part: `bytes` bytes from `begin` on, which are kept `place` bytes behind the beginning of what
/// an area has for a member.
struct stretch {
  const collective_pair *pair;
  std::int64_t begin, bytes, place;
};

/// Cuts the parts of pairs into rounds, each of which fits into `room` bytes. Stretches of a round begin at multiples
/// of `alignment`, and cut no element.
class pair_rounds {
public:
  static constexpr std::int64_t alignment = 64;

  /// `room` is a positive multiple of `alignment`.
  pair_rounds(const collective_pair *pairs, std::int32_t count, std::int64_t room)
      : next_(pairs), end_(pairs + count), room_(room) {}

  /// Makes the next round; returns false where all has passed.
  bool advance() {
    count_ = 0;
    bytes_ = 0;
    while (next_ != end_ && bytes_ < room_) {
      const std::int64_t n = std::min(next_->part_bytes() - done_, room_ - bytes_);
      if (n > 0)
        stretches_[count_++] = {next_, done_, n, bytes_};
      bytes_ += (n + alignment - 1) / alignment * alignment;
      done_ += n;
      if (done_ == next_->part_bytes()) {
        ++next_;
        done_ = 0;
      }
    }
    return count_ > 0;
  }

  const stretch *begin() const { return stretches_; }
  const stretch *end() const { return stretches_ + count_; }
  /// Returns the bytes of the round, with what fills up its stretches: a multiple of `alignment`.
  std::int64_t bytes() const { return bytes_; }

private:
  const collective_pair *next_, *end_;
  std::int64_t room_, done_ = 0, bytes_ = 0;
  std::int32_t count_ = 0;
  stretch stretches_[collective_pairs::most];
};

} // namespace windlass::rt::detail

#endif
