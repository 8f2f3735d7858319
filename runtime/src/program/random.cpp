#include "random.h"

#include <cmath>

namespace windlass::rt {

std::array<double, 2> normal_pair(std::uint64_t seed, std::uint64_t name_hash, std::uint64_t pair) {
  std::array<std::uint32_t, 4> word = philox(pair, name_hash, seed);
  auto unit = [](std::uint32_t high, std::uint32_t low) { // in (0, 1)
    return (static_cast<double>((std::uint64_t(high) << 32 | low) >> 12) + 0.5) * 0x1p-52;
  };
  constexpr double two_pi = 6.283185307179586476925;
  double radius = std::sqrt(-2 * std::log(unit(word[0], word[1])));
  double angle = two_pi * unit(word[2], word[3]);
  return {radius * std::cos(angle), radius * std::sin(angle)};
}

permutation::permutation(std::uint64_t size, std::uint64_t seed, std::uint64_t epoch)
    : size_(size), seed_(seed), epoch_(epoch) {
  while (half_bits_ < 31 && (std::uint64_t(1) << (2 * half_bits_)) < size)
    ++half_bits_;
}

std::uint64_t permutation::operator()(std::uint64_t position) const {
  const std::uint64_t mask = (std::uint64_t(1) << half_bits_) - 1;
  do {
    std::uint64_t left = position >> half_bits_, right = position & mask;
    for (std::uint64_t round = 0; round < 6; ++round) {
      // The constant keeps these counters apart from those of initial values.
      std::uint64_t mixed = philox(right | round << 56, epoch_ ^ 0x5368756666 /* "Shuff" */, seed_)[0];
      std::uint64_t next = left ^ (mixed & mask);
      left = right;
      right = next;
    }
    position = left << half_bits_ | right;
  } while (position >= size_);
  return position;
}

} // namespace windlass::rt
