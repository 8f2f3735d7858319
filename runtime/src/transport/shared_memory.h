// Collectives of processes on one host through a segment of shared memory.
#ifndef WINDLASS_TRANSPORT_SHARED_MEMORY_H
#define WINDLASS_TRANSPORT_SHARED_MEMORY_H

#include "windlass/rt/communicator.h"

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace windlass::rt {

/// Memory that the members of a communicator map; zero when fresh.
class shared_segment {
public:
  shared_segment() = default;
  shared_segment(const shared_segment &) = delete;
  shared_segment &operator=(const shared_segment &) = delete;
  ~shared_segment();

  /// Makes a segment and reserves its memory, so that a full file system is an error here and not a signal later. The
  /// segment has no name in the file system: however its processes end, nothing is left of it. The others find it at
  /// `address`, as long as this process runs and has not called forget_address().
  bool create(std::int64_t bytes, std::string &address);
  bool open(const std::string &address, std::int64_t bytes);
  void forget_address();
  std::byte *data() const { return data_; }

private:
  bool map(int file, std::int64_t bytes);
  int file_ = -1; ///< of the process that made it
  std::byte *data_ = nullptr;
  std::int64_t bytes_ = 0;
};

/// Returns the bytes of the segment that a group of `members` members needs.
std::int64_t shared_group_bytes(std::int32_t members);

/// Makes the communicator of member `index` over a segment that all members mapped; `members` are their ranks in the
/// job.
std::unique_ptr<communicator> make_shared_communicator(std::unique_ptr<shared_segment> segment,
                                                       const std::vector<std::int32_t> &members, std::int32_t index);

/// Makes `out` a communicator over shared memory, or leaves it as it is where a member cannot map that memory. All
/// members call this together. `tell(text, bytes)` copies the first member's text to all others; `agree(flag)` makes
/// the flag false on every member if it is false on one.
status try_shared_communicator(const std::vector<std::int32_t> &members, std::int32_t index,
                               const std::function<status(char *, std::int64_t)> &tell,
                               const std::function<status(bool &)> &agree, std::unique_ptr<communicator> &out);

} // namespace windlass::rt

#endif
