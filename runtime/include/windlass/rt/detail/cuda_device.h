// The means for writing code for CUDA devices: launches, and the streams that they go to. Compiled by nvcc, or by a C++
// compiler against the emulation (runtime/backends/cuda/emulation).
#ifndef WINDLASS_RT_DETAIL_CUDA_DEVICE_H
#define WINDLASS_RT_DETAIL_CUDA_DEVICE_H

#include "windlass/rt/detail/cuda_stream.h"

#include <algorithm>
#include <cstdint>
#include <tuple>
#include <type_traits>

namespace windlass::rt::cuda {

/// The threads of a block of most kernels.
constexpr int block_threads = 256;

/// Returns the number of blocks for `items` items, one or more for each thread; kernels walk in strides of the whole
/// grid.
inline unsigned blocks_for(std::int64_t items, std::int64_t per_block = block_threads) {
#if defined(__CUDACC__)
  constexpr std::int64_t most = 132 * 32; // fills the largest devices several times
#else
  constexpr std::int64_t most = 4; // an emulated thread costs more than an element
#endif
  return static_cast<unsigned>(std::clamp<std::int64_t>((items + per_block - 1) / per_block, 1, most));
}

/// Runs `kernel` on the stream; both the kernel and the arguments decide how it is spelt.
#if defined(__CUDACC__)
template <class... P, class... A>
status launch(const stream &s, unsigned blocks, int threads, void (*kernel)(P...), const A &...arguments) {
  kernel<<<blocks, static_cast<unsigned>(threads), 0, native(s)>>>(static_cast<P>(arguments)...);
  return check(cudaGetLastError(), "the launch of a kernel");
}
#else
template <class... P, class... A>
status launch(const stream &s, unsigned blocks, int threads, void (*kernel)(P...), const A &...arguments) {
  // Copies, as it may run later.
  const auto thread = [kernel, values = std::tuple<std::decay_t<P>...>(static_cast<P>(arguments)...)] {
    std::apply(kernel, values);
  };
  return check(static_cast<cudaError_t>(emulation::launch(native(s), blocks, static_cast<unsigned>(threads), thread)),
               "the launch of a kernel");
}
#endif

} // namespace windlass::rt::cuda

#endif
