#include "windlass/rt/hash.h"

#include "sha256_blocks.h"

#include <algorithm>
#include <cstring>

namespace windlass::rt {

const std::uint32_t sha256_constants[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

static std::uint32_t rotate(std::uint32_t x, int by) { return x >> by | x << (32 - by); }

static void compress(std::uint32_t *state, const std::uint8_t *block) {
  std::uint32_t w[64];
  for (int i = 0; i < 16; ++i)
    w[i] = static_cast<std::uint32_t>(block[4 * i]) << 24 | static_cast<std::uint32_t>(block[4 * i + 1]) << 16 |
           static_cast<std::uint32_t>(block[4 * i + 2]) << 8 | block[4 * i + 3];
  for (int i = 16; i < 64; ++i) {
    std::uint32_t s0 = rotate(w[i - 15], 7) ^ rotate(w[i - 15], 18) ^ w[i - 15] >> 3;
    std::uint32_t s1 = rotate(w[i - 2], 17) ^ rotate(w[i - 2], 19) ^ w[i - 2] >> 10;
    w[i] = w[i - 16] + s0 + w[i - 7] + s1;
  }
  std::uint32_t a = state[0], b = state[1], c = state[2], d = state[3];
  std::uint32_t e = state[4], f = state[5], g = state[6], h = state[7];
  for (int i = 0; i < 64; ++i) {
    std::uint32_t s1 = rotate(e, 6) ^ rotate(e, 11) ^ rotate(e, 25);
    std::uint32_t t1 = h + s1 + ((e & f) ^ (~e & g)) + sha256_constants[i] + w[i];
    std::uint32_t s0 = rotate(a, 2) ^ rotate(a, 13) ^ rotate(a, 22);
    std::uint32_t t2 = s0 + ((a & b) ^ (a & c) ^ (b & c));
    h = g, g = f, f = e, e = d + t1, d = c, c = b, b = a, a = t1 + t2;
  }
  const std::uint32_t add[8] = {a, b, c, d, e, f, g, h};
  for (std::size_t i = 0; i < 8; ++i)
    state[i] += add[i];
}

void sha256_portable(std::uint32_t *state, const std::uint8_t *blocks, std::size_t count) {
  for (; count > 0; --count, blocks += 64)
    compress(state, blocks);
}

namespace {

/// The byte table of CRC-32C, made at compile time.
constexpr std::array<std::uint32_t, 256> make_crc_table() {
  std::array<std::uint32_t, 256> table = {};
  for (std::uint32_t i = 0; i < 256; ++i) {
    std::uint32_t crc = i;
    for (int bit = 0; bit < 8; ++bit)
      crc = crc & 1 ? crc >> 1 ^ 0x82f63b78 : crc >> 1;
    table[i] = crc;
  }
  return table;
}
constexpr std::array<std::uint32_t, 256> crc_table = make_crc_table();

void take_blocks(std::array<std::uint32_t, 8> &state, const std::uint8_t *blocks, std::size_t count) {
  static const bool is_accelerated = has_sha256_instructions();
  (is_accelerated ? sha256_accelerated : sha256_portable)(state.data(), blocks, count);
}

} // namespace

void sha256::update(const void *data, std::size_t bytes) {
  const std::uint8_t *from = static_cast<const std::uint8_t *>(data);
  bytes_ += bytes;
  while (bytes > 0) {
    if (filled_ == 0 && bytes >= 64) {
      take_blocks(state_, from, bytes / 64);
      from += bytes / 64 * 64;
      bytes %= 64;
      continue;
    }
    std::size_t part = std::min(bytes, 64 - filled_);
    std::memcpy(block_.data() + filled_, from, part);
    filled_ += part;
    from += part;
    bytes -= part;
    if (filled_ == 64) {
      take_blocks(state_, block_.data(), 1);
      filled_ = 0;
    }
  }
}

std::array<std::uint8_t, 32> sha256::finish() {
  std::uint64_t bits = bytes_ * 8;
  const std::uint8_t one = 0x80, zero = 0;
  update(&one, 1);
  while (filled_ != 56)
    update(&zero, 1);
  std::uint8_t length[8];
  for (int i = 0; i < 8; ++i)
    length[i] = static_cast<std::uint8_t>(bits >> (56 - 8 * i));
  update(length, 8);
  std::array<std::uint8_t, 32> digest = {};
  for (std::size_t i = 0; i < 32; ++i)
    digest[i] = static_cast<std::uint8_t>(state_[i / 4] >> (24 - 8 * (i % 4)));
  return digest;
}

std::string sha256::finish_hex() {
  std::string text;
  for (std::uint8_t byte : finish()) {
    text += "0123456789abcdef"[byte >> 4];
    text += "0123456789abcdef"[byte & 15];
  }
  return text;
}

std::uint32_t crc32c(const void *data, std::size_t bytes) {
  const std::uint8_t *from = static_cast<const std::uint8_t *>(data);
  std::uint32_t crc = ~0u;
  for (std::size_t i = 0; i < bytes; ++i)
    crc = crc_table[(crc ^ from[i]) & 255] ^ crc >> 8;
  return ~crc;
}

std::uint64_t fnv1a(const void *data, std::size_t bytes) {
  const std::uint8_t *from = static_cast<const std::uint8_t *>(data);
  std::uint64_t hash = 0xcbf29ce484222325;
  for (std::size_t i = 0; i < bytes; ++i)
    hash = (hash ^ from[i]) * 0x100000001b3;
  return hash;
}

} // namespace windlass::rt
