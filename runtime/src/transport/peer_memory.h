// Memory of other processes of the host, read by system calls.
#ifndef WINDLASS_TRANSPORT_PEER_MEMORY_H
#define WINDLASS_TRANSPORT_PEER_MEMORY_H

#include <cstddef>
#include <cstdint>

namespace windlass::rt {

/// Copies `bytes` bytes from `from`, an address of `process`, to `to`. Returns false where the system does not let this
/// process do so, or the other one is gone.
bool read_peer(std::int64_t process, std::byte *to, const std::byte *from, std::int64_t bytes);

} // namespace windlass::rt

#endif
