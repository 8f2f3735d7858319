// What one rank holds while it runs: arenas, streams, events, communicators.
#ifndef WINDLASS_RT_CONTEXT_H
#define WINDLASS_RT_CONTEXT_H

#include "windlass/rt/communicator.h"
#include "windlass/rt/disk.h"
#include "windlass/rt/emulated_link.h"
#include "windlass/rt/program.h"
#include "windlass/rt/status.h"
#include "windlass/rt/stream.h"
#include "windlass/rt/view.h"

#include "windlass/rt/detail/backend.h"

#include <deque>
#include <memory>
#include <vector>

namespace windlass::rt {

/// One allocation of planned size, aligned to 4096 bytes, touched before the first step.
class arena {
public:
  arena() = default;
  arena(const arena &) = delete;
  arena &operator=(const arena &) = delete;
  ~arena();
  /// Allocates `bytes` bytes. `threads` threads touch a part each: the system puts pages on the memory node of the
  /// processor that touches them first.
  status allocate(std::int64_t bytes, const char *what, memory_kind kind = memory_kind::device,
                  std::int32_t threads = 1);
  /// Makes an arena that is a file in `folder`. Its addresses only name bytes: nothing is behind them.
  status open(std::int64_t bytes, const char *what, const std::string &folder);
  std::byte *at(std::int64_t offset) const { return base_ + offset; }
  std::int64_t size() const { return size_; }
  memory_kind kind() const { return kind_; }
  /// Returns the file of an arena of kind disk.
  disk_file *file() { return &file_; }

private:
  status map(std::int64_t bytes, const char *what, int protection, int flags);

  std::byte *base_ = nullptr;
  std::int64_t size_ = 0;
  memory_kind kind_ = memory_kind::device;
  disk_file file_;
};

class context {
public:
  /// Allocates what the job plans for rank `world.rank()`, and what it plans on the disk in the folder `disk`;
  /// `threads` is the size of the compute team. Collective over all ranks.
  status create(const job &j, transport &world, std::int32_t threads, const std::string &disk = ".");

  arena &get_arena(std::int32_t i) { return arenas_[static_cast<std::size_t>(i)]; }
  std::byte *at(const place &where) { return get_arena(where.arena).at(where.offset); }
  /// Returns the arena of kind disk that an address is in; null where it is in none.
  arena *find_disk(const std::byte *address);
  /// Returns the stream of kind compute.
  stream &compute() { return *streams_[static_cast<std::size_t>(compute_)]; }
  stream &get_stream(std::int32_t i) { return *streams_[static_cast<std::size_t>(i)]; }
  event &get_event(std::int32_t i) { return events_[static_cast<std::size_t>(i)]; }
  communicator &get_communicator(std::int32_t i) { return *communicators_[static_cast<std::size_t>(i)]; }
  /// Returns the communicator of this rank and peer `i` of its program, in the order of their positions.
  communicator &get_peer(std::int32_t i) { return *peers_[static_cast<std::size_t>(i)]; }
  std::int32_t rank() const { return rank_; }
  std::int32_t ranks() const { return ranks_; }
  /// Returns this rank's coordinate on axis `i` of its position's mesh.
  std::int32_t coordinate(std::int32_t i) const { return coordinates_[static_cast<std::size_t>(i)]; }
  std::int32_t axis_size(std::int32_t i) const { return axis_sizes_[static_cast<std::size_t>(i)]; }
  /// Returns the bytes of the collectives that this rank has issued since the last call, over all communicators.
  collective_bytes take_sent();
  /// Waits for every stream and returns the first error among them.
  status synchronize();

private:
  std::deque<arena> arenas_;
  arena scratch_;
  std::vector<event> events_;
  std::vector<std::unique_ptr<communicator>> communicators_, peers_;
  emulated_link to_device_, to_host_;
  std::vector<std::unique_ptr<stream>> streams_; // after what their commands use: they end first
  std::vector<std::int32_t> coordinates_, axis_sizes_;
  std::int32_t rank_ = 0, ranks_ = 1, compute_ = 0;

  status create_communicators(const job &j, std::int32_t position, transport &world);
  status create_streams(const job &j, const program &p, std::int32_t threads, std::int64_t scratch_bytes);
  status create_device_communicators(const job &j, const program &p, transport &world);
};

} // namespace windlass::rt

#endif
