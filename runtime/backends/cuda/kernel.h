// What the kernels share: elements of any type, sums of warps and blocks, checks of views.
#ifndef WINDLASS_BACKENDS_CUDA_KERNEL_H
#define WINDLASS_BACKENDS_CUDA_KERNEL_H

#include "stream.h"

#include "windlass/rt/detail/half.h"
#include "windlass/rt/detail/sequence.h"
#include "windlass/rt/kernels.h"
#include "windlass/rt/scalar.h"
#include "windlass/rt/view.h"

#include <initializer_list>
#include <limits>
#include <string>

namespace windlass::rt::cuda {

using detail::sequence;

constexpr unsigned all_lanes = 0xffffffffu;
constexpr int warp_lanes = 32;
/// The most threads of a block.
constexpr int most_threads = 1024;

/// A floating-point operand of any of the types that kernels compute with, in f32.
struct operand {
  std::byte *data;
  element_type type;

  operand(const view &v) : data(v.data), type(v.type) {} // NOLINT: views become operands where kernels are launched
  WINDLASS_FN operand(std::byte *memory, element_type element) : data(memory), type(element) {}

  WINDLASS_FN bool is_absent() const { return data == nullptr; }
  WINDLASS_FN float get(std::int64_t i) const {
    if (type == element_type::f32)
      return reinterpret_cast<const float *>(data)[i];
    if (type == element_type::bf16)
      return static_cast<float>(reinterpret_cast<const detail::bf16 *>(data)[i]);
    return static_cast<float>(reinterpret_cast<const detail::f16 *>(data)[i]);
  }
  WINDLASS_FN void set(std::int64_t i, float value) const {
    if (type == element_type::f32)
      reinterpret_cast<float *>(data)[i] = value;
    else if (type == element_type::bf16)
      reinterpret_cast<detail::bf16 *>(data)[i] = detail::bf16(value);
    else
      reinterpret_cast<detail::f16 *>(data)[i] = detail::f16(value);
  }
};

inline bool is_real(const view &v) {
  return v.type == element_type::f32 || v.type == element_type::bf16 || v.type == element_type::f16;
}
inline bool are_real(std::initializer_list<view> views) {
  bool all = true;
  for (const view &v : views)
    all = all && (v.is_absent() || is_real(v));
  return all;
}

using rt::has_same_dims;
using rt::has_same_sizes;

inline std::int64_t last_stride(const view &v) {
  return v.rank == 0 || v.sizes[v.rank - 1] == 1 ? 1 : v.strides[v.rank - 1];
}

/// Zeros a view, as a part of a command that adds to it.
status clear(stream &s, const view &out);

inline status check_views(bool fits, const char *kernel) {
  if (fits)
    return {};
  return internal_error(std::string(kernel) + " got views whose types, ranks or sizes do not fit");
}

// Reductions. Every thread of the block takes part, and every thread gets the result. The order of additions depends on
// the block's size only.

struct add_values {
  template <class T> WINDLASS_FN static T join(T a, T b) { return a + b; }
};
/// Keeps a NaN.
struct larger_value {
  template <class T> WINDLASS_FN static T join(T a, T b) { return ((a > b) | (a != a)) ? a : b; }
};
struct smaller_value {
  template <class T> WINDLASS_FN static T join(T a, T b) { return ((a < b) | (a != a)) ? a : b; }
};
/// Passes NaN over.
struct larger_number {
  template <class T> WINDLASS_FN static T join(T a, T b) { return std::fmax(a, b); }
};

template <class Op, class T> __device__ inline T reduce_warp(T value) {
  for (int lane = warp_lanes / 2; lane > 0; lane /= 2)
    value = Op::join(value, __shfl_xor_sync(all_lanes, value, lane));
  return value;
}

/// Reduces over a block of whole warps.
template <class Op, class T> __device__ inline T reduce_block(T value) {
  __shared__ T warps[most_threads / warp_lanes];
  __shared__ T result;
  value = reduce_warp<Op>(value);
  if (threadIdx.x % warp_lanes == 0)
    warps[threadIdx.x / warp_lanes] = value;
  __syncthreads();
  if (threadIdx.x == 0) {
    T all = warps[0];
    for (unsigned w = 1; w < blockDim.x / warp_lanes; ++w)
      all = Op::join(all, warps[w]);
    result = all;
  }
  __syncthreads();
  const T all = result;
  __syncthreads(); // the next reduction writes to the same places
  return all;
}

/// Notes what is wrong unless something was before.
__device__ inline void report(fault *at, fault_kind kind, std::int64_t value, std::int64_t position,
                              std::int64_t limit) {
  if (atomicCAS(&at->kind, 0ull, static_cast<unsigned long long>(kind)) != 0)
    return;
  at->value = value;
  at->position = position;
  at->limit = limit;
  __threadfence_system();
}

/// The first item of each of the grid's threads, and their step.
__device__ inline std::int64_t grid_thread() { return blockIdx.x * std::int64_t(blockDim.x) + threadIdx.x; }
__device__ inline std::int64_t grid_threads() { return std::int64_t(gridDim.x) * blockDim.x; }

/// Returns the blocks for `rows` rows: one for each row, or one for several rows when there are many.
inline unsigned blocks_for_rows(std::int64_t rows) { return blocks_for(rows, 1); }

} // namespace windlass::rt::cuda

#endif
