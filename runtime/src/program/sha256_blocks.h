// The compression function of SHA-256, portable and with the processor's instructions for it.
#ifndef WINDLASS_RT_SRC_PROGRAM_SHA256_BLOCKS_H
#define WINDLASS_RT_SRC_PROGRAM_SHA256_BLOCKS_H

#include <cstddef>
#include <cstdint>

namespace windlass::rt {

extern const std::uint32_t sha256_constants[64];

/// Takes `count` blocks of 64 bytes into the state of eight words.
void sha256_portable(std::uint32_t *state, const std::uint8_t *blocks, std::size_t count);
/// Does the same several times as fast; must be called only where `has_sha256_instructions`.
void sha256_accelerated(std::uint32_t *state, const std::uint8_t *blocks, std::size_t count);
bool has_sha256_instructions();

} // namespace windlass::rt

#endif
