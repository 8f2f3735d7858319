// A stable sort of numbers with a value each, on the device.
#ifndef WINDLASS_BACKENDS_CUDA_SORT_H
#define WINDLASS_BACKENDS_CUDA_SORT_H

#include "windlass/rt/status.h"
#include "windlass/rt/stream.h"

#include <cstdint>

namespace windlass::rt::cuda {

/// Arrays of the same length.
struct keyed_values {
  std::uint32_t *keys, *values;
};

/// Returns the bytes of `counts` in a sort of `n` numbers.
std::int64_t sort_count_bytes(std::int64_t n);

/// Sorts `n` of them, fewer than 2^31, by their keys, which are at most `largest`. Equal keys keep their order. Both
/// arrays change; `sorted` has the result.
status sort_by_key(stream &s, keyed_values &sorted, keyed_values other, std::uint32_t *counts, std::int64_t n,
                   std::uint32_t largest);

} // namespace windlass::rt::cuda

#endif
