// Random numbers that depend only on their purpose, and a permutation that is computed position by position.
#ifndef WINDLASS_RT_SRC_PROGRAM_RANDOM_H
#define WINDLASS_RT_SRC_PROGRAM_RANDOM_H

#include "windlass/rt/philox.h"

#include <array>
#include <cstdint>

namespace windlass::rt {

/// Returns the standard normal numbers of elements 2 * `pair` and 2 * `pair` + 1 of the tensor with that name hash
/// (Box-Muller).
std::array<double, 2> normal_pair(std::uint64_t seed, std::uint64_t name_hash, std::uint64_t pair);

/// A permutation of 0 .. size-1 keyed by (seed, epoch): a Feistel network of even width, walked along its cycle until
/// it lands inside. Needs no memory, and each position costs a few rounds.
class permutation {
public:
  permutation(std::uint64_t size, std::uint64_t seed, std::uint64_t epoch);
  std::uint64_t operator()(std::uint64_t position) const;

private:
  std::uint64_t size_, seed_, epoch_;
  int half_bits_ = 1;
};

} // namespace windlass::rt

#endif
