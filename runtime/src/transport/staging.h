// The areas through which sums go that several hosts add.
#ifndef WINDLASS_TRANSPORT_STAGING_H
#define WINDLASS_TRANSPORT_STAGING_H

#include <cstddef>
#include <cstdint>

namespace windlass::rt {

/// The largest piece that is added at once.
constexpr std::int64_t piece_bytes = 4 << 20;

/// Returns the bytes of an area for a piece, with the rounding of its parts to 16 elements. A member has two.
constexpr std::size_t staging_bytes(std::int32_t members) {
  return static_cast<std::size_t>(piece_bytes + std::int64_t(members) * 16 * 8);
}

} // namespace windlass::rt

#endif
