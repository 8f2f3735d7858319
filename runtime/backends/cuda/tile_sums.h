// Tiles of a product of matrices whose elements are read by functions.
#ifndef WINDLASS_BACKENDS_CUDA_TILE_SUMS_H
#define WINDLASS_BACKENDS_CUDA_TILE_SUMS_H

#include "kernel.h"

namespace windlass::rt::cuda {

/// The rows and columns of a block's tile, the depth that it takes at once, and the rows and columns of a thread.
constexpr int tile = 64, slice = 16, own = 4;
constexpr int tile_threads = (tile / own) * (tile / own);

/// Returns the number of tiles that cover `size` rows or columns.
WINDLASS_FN std::int64_t tiles_of(std::int64_t size) { return (size + tile - 1) / tile; }

/// The sums of a thread of a block, which brings a tile of both factors to shared memory.
struct tile_sums {
  float sums[own][own] = {};

  /// Adds left(row, k) * right(k, column) over the depth. Neighbours read what lies side by side: the left factor along
  /// its depth, the right one along its columns.
  template <class Left, class Right>
  __device__ void add(std::int64_t depth, std::int64_t height, std::int64_t width, Left left, Right right) {
    __shared__ float a[slice][tile + 1], b[slice][tile + 1];
    const int thread = static_cast<int>(threadIdx.x), row = thread / (tile / own), column = thread % (tile / own);
    for (std::int64_t first = 0; first < depth; first += slice) {
      for (int i = thread; i < slice * tile; i += tile_threads) {
        const int k = i % slice, r = i / slice;
        a[k][r] = r < height && first + k < depth ? left(r, first + k) : 0.0f;
      }
      for (int i = thread; i < slice * tile; i += tile_threads) {
        const int k = i / tile, c = i % tile;
        b[k][c] = c < width && first + k < depth ? right(first + k, c) : 0.0f;
      }
      __syncthreads();
      for (int k = 0; k < slice; ++k)
        for (int r = 0; r < own; ++r)
          for (int c = 0; c < own; ++c)
            sums[r][c] += a[k][row + r * (tile / own)] * b[k][column + c * (tile / own)];
      __syncthreads(); // the next slices come to the same places
    }
  }

  /// Calls f(row, column, sum) for those of the thread's sums that are inside.
  template <class F> __device__ void for_each(std::int64_t height, std::int64_t width, F f) const {
    const int thread = static_cast<int>(threadIdx.x);
    for (int r = 0; r < own; ++r)
      for (int c = 0; c < own; ++c) {
        const int row = thread / (tile / own) + r * (tile / own), column = thread % (tile / own) + c * (tile / own);
        if (row < height && column < width)
          f(row, column, sums[r][c]);
      }
  }
};

} // namespace windlass::rt::cuda

#endif
