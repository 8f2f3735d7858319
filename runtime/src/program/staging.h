// Memory of the host for what a device reads again and again.
#ifndef WINDLASS_RT_SRC_PROGRAM_STAGING_H
#define WINDLASS_RT_SRC_PROGRAM_STAGING_H

#include "windlass/rt/context.h"

namespace windlass::rt {

/// Two pinned blocks of the host's memory that take turns. The device copies one by itself, after the commands issued
/// so far, while the host fills the other. For back ends with a device; it allocates nothing after `allocate`.
class staging {
public:
  /// `threads` threads touch the blocks first; `s`, which outlives this, is the stream that copies.
  status allocate(stream &s, std::int64_t bytes, std::int32_t threads);
  /// Returns the block to fill next, which stays the same until it is sent. Waits until the device has copied what was
  /// sent from it before.
  status take(std::byte *&out);
  /// Copies the first `bytes` bytes of the block from `take` to the device.
  status send(std::byte *to, std::int64_t bytes);

private:
  std::size_t next() const { return static_cast<std::size_t>(sends_ % 2); }

  stream *stream_ = nullptr;
  std::int64_t bytes_ = 0; ///< of a block
  arena blocks_;
  event copied_[2];
  std::uint64_t sends_ = 0;
};

} // namespace windlass::rt

#endif
