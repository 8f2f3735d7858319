// By 8 bits at a time, from the last: how often each of 256 digits is in each tile, where it begins, and then every
// tile moves its numbers there. A thread stands for a digit and goes over its tile in order, so no atomics are needed
// and the sort is stable.
#include "sort.h"

#include "kernel.h"

#include <utility>

namespace windlass::rt::cuda {
namespace {

constexpr int digit_bits = 8, digits = 1 << digit_bits, tile = 512;
static_assert(digits == block_threads);

__device__ inline std::uint32_t digit_of(std::uint32_t key, int shift) { return key >> shift & (digits - 1); }

/// counts[tile, digit]
__global__ void count_digits(std::uint32_t *counts, const std::uint32_t *keys, std::int64_t n, int shift) {
  __shared__ std::uint32_t of_tile[tile];
  for (std::int64_t at = blockIdx.x; at * tile < n; at += gridDim.x) {
    const std::int64_t size = n - at * tile < tile ? n - at * tile : tile;
    for (std::int64_t i = threadIdx.x; i < size; i += blockDim.x)
      of_tile[i] = digit_of(keys[at * tile + i], shift);
    __syncthreads();
    std::uint32_t count = 0;
    for (std::int64_t i = 0; i < size; ++i)
      count += of_tile[i] == threadIdx.x;
    counts[at * digits + threadIdx.x] = count;
    __syncthreads(); // the next tile's keys come to the same place
  }
}

/// Where the digits of each tile begin. One block.
__global__ void begin_digits(std::uint32_t *__restrict__ begins, const std::uint32_t *__restrict__ counts,
                             std::int64_t tiles) {
  __shared__ std::uint32_t totals[digits];
  std::uint32_t total = 0;
  for (std::int64_t at = 0; at < tiles; ++at)
    total += counts[at * digits + threadIdx.x];
  totals[threadIdx.x] = total;
  __syncthreads();
  std::uint32_t begin = 0;
  for (unsigned d = 0; d < threadIdx.x; ++d)
    begin += totals[d];
#pragma unroll 8
  for (std::int64_t at = 0; at < tiles; ++at) {
    begins[at * digits + threadIdx.x] = begin;
    begin += counts[at * digits + threadIdx.x];
  }
}

__global__ void move_by_digit(keyed_values to, keyed_values from, const std::uint32_t *begins, std::int64_t n,
                              int shift) {
  __shared__ std::uint32_t keys[tile], values[tile];
  for (std::int64_t at = blockIdx.x; at * tile < n; at += gridDim.x) {
    const std::int64_t size = n - at * tile < tile ? n - at * tile : tile;
    for (std::int64_t i = threadIdx.x; i < size; i += blockDim.x) {
      keys[i] = from.keys[at * tile + i];
      values[i] = from.values[at * tile + i];
    }
    __syncthreads();
    std::uint32_t place = begins[at * digits + threadIdx.x];
    for (std::int64_t i = 0; i < size; ++i)
      if (digit_of(keys[i], shift) == threadIdx.x) {
        to.keys[place] = keys[i];
        to.values[place++] = values[i];
      }
    __syncthreads(); // the next tile comes to the same place
  }
}

std::int64_t tiles_of(std::int64_t n) { return (n + tile - 1) / tile; }

} // namespace

std::int64_t sort_count_bytes(std::int64_t n) { return 2 * tiles_of(n) * digits * std::int64_t(sizeof(std::uint32_t)); }

status sort_by_key(stream &s, keyed_values &sorted, keyed_values other, std::uint32_t *counts, std::int64_t n,
                   std::uint32_t largest) {
  const unsigned blocks = blocks_for(tiles_of(n), 1);
  std::uint32_t *const begins = counts + tiles_of(n) * digits;
  for (int shift = 0; shift < 32 && (shift == 0 || largest >> shift != 0); shift += digit_bits) {
    WINDLASS_TRY(launch(s, blocks, block_threads, count_digits, counts, sorted.keys, n, shift));
    WINDLASS_TRY(launch(s, 1, block_threads, begin_digits, begins, counts, tiles_of(n)));
    WINDLASS_TRY(launch(s, blocks, block_threads, move_by_digit, other, sorted, begins, n, shift));
    std::swap(sorted, other);
  }
  return {};
}

} // namespace windlass::rt::cuda
