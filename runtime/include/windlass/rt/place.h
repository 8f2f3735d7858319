// The places of bytes: in which arena, and at which offset.
#ifndef WINDLASS_RT_PLACE_H
#define WINDLASS_RT_PLACE_H

#include <cstdint>

namespace windlass::rt {

/// The memory that an arena is allocated in: the device's, host memory that the device copies from and to, or a file on
/// the host's disk.
enum class memory_kind : std::int32_t { device, pinned, disk };

/// The place where something begins: the number of its arena in the program, and its offset there in bytes. Two arenas
/// never share a byte.
struct place {
  std::int32_t arena = 0;
  std::int64_t offset = 0;
  constexpr bool is_absent() const { return arena < 0; }
};

constexpr bool operator==(const place &a, const place &b) { return a.arena == b.arena && a.offset == b.offset; }
constexpr bool operator!=(const place &a, const place &b) { return !(a == b); }

/// The place of something that a program does not have.
constexpr place no_place = {-1, 0};

} // namespace windlass::rt

#endif
