// Where bytes are.
#ifndef WINDLASS_RT_PLACE_H
#define WINDLASS_RT_PLACE_H

#include <cstdint>

namespace windlass::rt {

/// What an arena is an allocation of: the device's memory, or the host's that the device copies from and to.
enum class memory_kind : std::int32_t { device, pinned };

/// Where something begins: in an arena, by its number in the program's, that many bytes from its first. Two arenas
/// never share a byte.
struct place {
  std::int32_t arena = 0;
  std::int64_t offset = 0;
  constexpr bool is_absent() const { return arena < 0; }
};

constexpr bool operator==(const place &a, const place &b) { return a.arena == b.arena && a.offset == b.offset; }
constexpr bool operator!=(const place &a, const place &b) { return !(a == b); }

/// Of what a program does not have.
constexpr place no_place = {-1, 0};

} // namespace windlass::rt

#endif
