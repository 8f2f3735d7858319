// Products of small matrices by a warp, on the device's units for them (tensor cores).
#ifndef WINDLASS_BACKENDS_CUDA_MATRIX_UNITS_H
#define WINDLASS_BACKENDS_CUDA_MATRIX_UNITS_H

#include "kernel.h"

#include <type_traits>

namespace windlass::rt::cuda {

// A warp holds a matrix in pieces, each lane some elements (PTX ISA, "Matrix Fragments for mma.m16n8k16"). With the
// lane's group of four lanes g = lane / 4 and its place t = lane % 4 in it:

/// 16 rows of 16 numbers of 16 bits: two neighbours from column 2t on in rows g and g + 8, then from column 2t + 8 on.
using left_piece = std::uint32_t[4];
/// 16 rows of 8: column g of rows 2t, 2t + 1, then of 2t + 8, 2t + 9.
using right_piece = std::uint32_t[2];
/// 16 rows of 8 of f32: columns 2t, 2t + 1 of row g, then of row g + 8.
using sum_piece = float[4];

template <class H> __device__ inline std::uint32_t join_halves(H low, H high) {
  return std::uint32_t(low.bits) | std::uint32_t(high.bits) << 16;
}

/// sums += left right, where every lane of the warp takes part.
template <class H>
__device__ inline void multiply_add(sum_piece &sums, const left_piece &left, const right_piece &right) {
#if defined(WINDLASS_CUDA_EMULATED)
  struct {
    left_piece left;
    right_piece right;
  } own, all[warp_lanes];
  std::memcpy(own.left, left, sizeof own.left);
  std::memcpy(own.right, right, sizeof own.right);
  emulation::collect(&own, sizeof own, all);
  const auto half = [](std::uint32_t pair, int k) {
    H out;
    out.bits = static_cast<std::uint16_t>(k % 2 == 0 ? pair : pair >> 16);
    return static_cast<float>(out);
  };
  const int g = static_cast<int>(threadIdx.x) % warp_lanes / 4, t = static_cast<int>(threadIdx.x) % 4;
  for (int i = 0; i < 4; ++i)
    for (int k = 0; k < 16; ++k) {
      const int row = i / 2, column = 2 * t + i % 2, lane = k % 8 / 2;
      sums[i] += half(all[g * 4 + lane].left[row + k / 8 * 2], k) * half(all[column * 4 + lane].right[k / 8], k);
    }
#elif defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
  if constexpr (std::is_same_v<H, detail::bf16>)
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
                 "{%0,%1,%2,%3};"
                 : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
                 : "r"(left[0]), "r"(left[1]), "r"(left[2]), "r"(left[3]), "r"(right[0]), "r"(right[1]));
  else
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
                 "{%0,%1,%2,%3};"
                 : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
                 : "r"(left[0]), "r"(left[1]), "r"(left[2]), "r"(left[3]), "r"(right[0]), "r"(right[1]));
#endif
}

/// Makes the left piece of the 16 columns from 16 k on of sums of as many rows, in 16 bits.
template <class H> __device__ inline void round_to_left(left_piece &out, const sum_piece *sums, int k) {
  for (int half = 0; half < 2; ++half)
    for (int row = 0; row < 2; ++row)
      out[row + 2 * half] = join_halves(H(sums[2 * k + half][2 * row]), H(sums[2 * k + half][2 * row + 1]));
}

/// Rows of 16-bit numbers in shared memory. Lanes of the same place in different groups meet different banks, because a
/// row has 8 numbers more than a multiple of 64.
template <class H, int Pitch> struct matrix_rows {
  const H *of;
  __device__ std::uint32_t pair(int row, int column) const {
    return *reinterpret_cast<const std::uint32_t *>(of + row * Pitch + column);
  }
  /// The piece of the 16 rows from `row` on, and of the 16 columns from `column` on.
  __device__ void load_left(left_piece &out, int row, int column, int lane) const {
    const int g = lane / 4, t = lane % 4;
    for (int i = 0; i < 4; ++i)
      out[i] = pair(row + g + i % 2 * 8, column + 2 * t + i / 2 * 8);
  }
  /// The piece of the transpose of 8 rows from `row` on, and of 16 columns from `column` on.
  __device__ void load_turned(right_piece &out, int row, int column, int lane) const {
    for (int i = 0; i < 2; ++i)
      out[i] = pair(row + lane / 4, column + lane % 4 * 2 + i * 8);
  }
  /// The piece of 16 rows from `row` on, and of 8 columns from `column` on.
  __device__ void load_right(right_piece &out, int row, int column, int lane) const {
    for (int i = 0; i < 2; ++i) {
      const H *at = of + (row + lane % 4 * 2 + i * 8) * Pitch + column + lane / 4;
      out[i] = join_halves(at[0], at[Pitch]);
    }
  }
};

} // namespace windlass::rt::cuda

#endif
