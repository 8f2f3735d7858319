// Random bits that depend only on their purpose: Philox4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1,
// 2, 3", SC 2011), and the dropout masks made of them.
#ifndef WINDLASS_RT_PHILOX_H
#define WINDLASS_RT_PHILOX_H

#include "windlass/rt/detail/function.h"

#include <array>
#include <cstdint>

namespace windlass::rt {

/// Returns four random words for a 128-bit counter (two halves) and a 64-bit key.
WINDLASS_FN std::array<std::uint32_t, 4> philox(std::uint64_t counter_low, std::uint64_t counter_high,
                                                std::uint64_t key) {
  std::array<std::uint32_t, 4> c = {
      static_cast<std::uint32_t>(counter_low), static_cast<std::uint32_t>(counter_low >> 32),
      static_cast<std::uint32_t>(counter_high), static_cast<std::uint32_t>(counter_high >> 32)};
  std::uint32_t k0 = static_cast<std::uint32_t>(key), k1 = static_cast<std::uint32_t>(key >> 32);
  for (int round = 0; round < 10; ++round) {
    std::uint64_t p0 = std::uint64_t(0xd2511f53) * c[0], p1 = std::uint64_t(0xcd9e8d57) * c[2];
    c = {static_cast<std::uint32_t>(p1 >> 32) ^ c[1] ^ k0, static_cast<std::uint32_t>(p1),
         static_cast<std::uint32_t>(p0 >> 32) ^ c[3] ^ k1, static_cast<std::uint32_t>(p0)};
    k0 += 0x9e3779b9;
    k1 += 0xbb67ae85;
  }
  return c;
}

/// Returns the key of one sample's mask for dropout number `mask` of a model. Samples are numbered from the beginning
/// of the run, k * batch + row for micro-batch k, so that the key does not depend on the number of ranks.
WINDLASS_FN std::int64_t dropout_key(std::uint64_t seed, std::uint64_t sample, std::uint64_t mask) {
  // The constant keeps these counters apart from those of initial values and permutations.
  const std::array<std::uint32_t, 4> word = philox(sample, mask ^ 0x44726f706f757400 /* "Dropout" */, seed);
  return static_cast<std::int64_t>(std::uint64_t(word[1]) << 32 | word[0]);
}

/// Returns the bound below which a word drops its element. A ratio outside of [0, 1] drops none or all.
WINDLASS_FN std::uint64_t dropout_threshold(double ratio) {
  return ratio <= 0 ? 0 : ratio >= 1 ? std::uint64_t(1) << 32 : static_cast<std::uint64_t>(ratio * 0x1p32);
}

/// Returns the random words of the elements 4 i … 4 i + 3 of a sample with that key.
WINDLASS_FN std::array<std::uint32_t, 4> dropout_words(std::int64_t key, std::int64_t i) {
  return philox(static_cast<std::uint64_t>(i), 0, static_cast<std::uint64_t>(key));
}

} // namespace windlass::rt

#endif
