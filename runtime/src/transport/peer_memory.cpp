#include "peer_memory.h"

#include <sys/types.h>

#if defined(__linux__)
#include <sys/uio.h>
#endif

namespace windlass::rt {

#if defined(__linux__)

bool read_peer(std::int64_t process, std::byte *to, const std::byte *from, std::int64_t bytes) {
  while (bytes > 0) { // one call may move less than it is asked to
    const iovec here = {to, static_cast<std::size_t>(bytes)};
    const iovec there = {const_cast<std::byte *>(from), static_cast<std::size_t>(bytes)};
    const ssize_t moved = process_vm_readv(static_cast<pid_t>(process), &here, 1, &there, 1, 0);
    if (moved <= 0)
      return false;
    to += moved, from += moved, bytes -= moved;
  }
  return true;
}

#else

bool read_peer(std::int64_t, std::byte *, const std::byte *, std::int64_t) { return false; }

#endif

} // namespace windlass::rt
