// Pseudo-random numbers that are the same everywhere (splitmix64, Steele et al. 2014).
#ifndef WINDLASS_SUPPORT_RANDOM_H
#define WINDLASS_SUPPORT_RANDOM_H

#include <cstdint>

namespace windlass {

/// One sequence of numbers.
class Random {
public:
  explicit Random(uint64_t seed) : state(seed) {}
  uint64_t next() {
    uint64_t z = (state += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
  }
  /// Returns a number from 0 to count - 1.
  int32_t below(int32_t count) { return static_cast<int32_t>(((next() >> 32) * static_cast<uint64_t>(count)) >> 32); }
  /// Returns a number above 0 and below 1.
  double uniform() { return (static_cast<double>(next() >> 12) + 0.5) * 0x1p-52; }

private:
  uint64_t state;
};

} // namespace windlass

#endif
