// Arenas as the host reads and writes them.
#ifndef WINDLASS_RT_HOST_COPY_H
#define WINDLASS_RT_HOST_COPY_H

#include "windlass/rt/context.h"

#include <memory>

namespace windlass::rt {

/// A range of an arena's bytes for the host: the bytes themselves where the host shares the arena's memory, else a
/// copy. Copies take their turn in the order of the compute stream's commands. Nothing else may be at work on a disk's.
class host_copy {
public:
  host_copy(context &c, const place &from, std::int64_t bytes);
  std::byte *data() { return own_ ? own_.get() : memory_; }
  template <class T> T *as() { return reinterpret_cast<T *>(data()); }
  /// Copies from the device or the disk what it holds; waits for the commands before.
  status load();
  /// Copies to the device or the disk what the host has written; the host may write again at once.
  status store();

private:
  stream &compute_;
  disk_file *file_ = nullptr; ///< null for other memories than the disk
  std::int64_t offset_ = 0;
  std::byte *memory_;
  std::int64_t bytes_;
  std::unique_ptr<std::byte[]> own_;
};

} // namespace windlass::rt

#endif
