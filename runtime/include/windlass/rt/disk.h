// What a rank keeps on its host's disk between the uses of a step.
#ifndef WINDLASS_RT_DISK_H
#define WINDLASS_RT_DISK_H

#include "windlass/rt/emulated_link.h"
#include "windlass/rt/status.h"
#include "windlass/rt/stream.h"
#include "windlass/rt/view.h"

#include <memory>
#include <mutex>
#include <string>

namespace windlass::rt {

class context;

/// What is in a file of a disk begins at multiples of this (bytes), as does memory that it is read to directly.
constexpr std::int64_t disk_page = 4096;

/// The bytes of the pages between a file and memory that is not aligned, for each of the two directions.
constexpr std::int64_t disk_stream_bytes = 1 << 20;

/// A file of fixed size that lasts as long as its process: it has no name, so that nothing is left of it whatever ends
/// the program. Bytes pass by the system's cache of files where the file system allows that (O_DIRECT), so that the
/// cache takes no memory from the host's arenas. One thread may read while another one writes other bytes.
class disk_file {
public:
  disk_file() = default;
  disk_file(const disk_file &) = delete;
  disk_file &operator=(const disk_file &) = delete;
  ~disk_file();
  /// Makes a file of `bytes` bytes, all zero, in `folder` and reserves its blocks: a disk that fills up later does not
  /// matter.
  status open(const std::string &folder, std::int64_t bytes);
  /// Lets reads and writes keep to a rate in bytes per second, which they share; 0 ends this.
  void keep_rate(std::int64_t bytes_per_second) { link_.set_rate(bytes_per_second); }
  /// Reads or writes `bytes` bytes from `offset` on, a multiple of `disk_page`. Up to the next such multiple nothing
  /// else is in the file: what is written there is undefined.
  status read(std::int64_t offset, std::byte *to, std::int64_t bytes) { return move(reading_, offset, to, bytes); }
  status write(std::int64_t offset, const std::byte *from, std::int64_t bytes) {
    return move(writing_, offset, const_cast<std::byte *>(from), bytes);
  }

private:
  /// Pages through which bytes pass in one direction that are not aligned in memory.
  struct channel {
    bool writes = false;
    std::mutex turn;
    std::unique_ptr<std::byte, void (*)(void *)> pages = {nullptr, nullptr};
  };
  status move(channel &way, std::int64_t offset, std::byte *memory, std::int64_t bytes);
  /// Moves whole pages from or to aligned memory.
  status move_pages(bool writes, std::int64_t offset, std::byte *memory, std::int64_t bytes);

  int descriptor_ = -1;
  std::string folder_;
  channel reading_, writing_;
  emulated_link link_;
};

/// out <- in, where one of both is in an arena of kind disk of the rank and the other one in memory of the host. Views
/// are dense and of one type. The stream is one of kind disk_read or disk_write.
status copy_disk(context &c, stream &s, const view &out, const view &in);

} // namespace windlass::rt

#endif
