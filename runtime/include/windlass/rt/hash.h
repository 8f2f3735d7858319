// Checksums: SHA-256 (FIPS 180-4) for checkpoint files, CRC-32C for TensorBoard records.
#ifndef WINDLASS_RT_HASH_H
#define WINDLASS_RT_HASH_H

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

namespace windlass::rt {

class sha256 {
public:
  void update(const void *data, std::size_t bytes);
  /// Returns the digest of the bytes given; the object cannot be used afterwards.
  std::array<std::uint8_t, 32> finish();
  /// Returns the digest in lower-case hexadecimal.
  std::string finish_hex();

private:
  std::array<std::uint32_t, 8> state_ = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                         0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  std::array<std::uint8_t, 64> block_ = {};
  std::size_t filled_ = 0;
  std::uint64_t bytes_ = 0;
};

/// Returns the CRC-32C (Castagnoli polynomial, reflected) of `bytes` bytes.
std::uint32_t crc32c(const void *data, std::size_t bytes);
/// Returns the 64-bit FNV-1a hash of `bytes` bytes, for keys that need to be stable and not secret.
std::uint64_t fnv1a(const void *data, std::size_t bytes);

} // namespace windlass::rt

#endif
