// Element-wise work on a device; part of windlass/rt/map.h.
#ifndef WINDLASS_RT_DETAIL_MAP_CUDA_H
#define WINDLASS_RT_DETAIL_MAP_CUDA_H

#include "windlass/rt/detail/cuda_device.h"

namespace windlass::rt::detail {

/// The elements that one thread loads and stores at once.
template <class T, int W> struct alignas(sizeof(T) * W) pack {
  T of[W];
};

/// Loads W neighbours, or W times the one element that an operand repeats.
template <int W, class T> WINDLASS_FN pack<T, W> load_pack(const std::byte *data, std::int64_t offset, bool repeats) {
  const T *from = reinterpret_cast<const T *>(data) + offset;
  if (W == 1 || !repeats)
    return *reinterpret_cast<const pack<T, W> *>(from);
  pack<T, W> all;
  const T value = *from;
  for (int w = 0; w < W; ++w)
    all.of[w] = value;
  return all;
}

template <class F, int W, class... Out, class... In, std::size_t... O, std::size_t... I>
WINDLASS_FN void map_pack(const F &f, std::byte *const *data, const std::int64_t *offsets, const bool *repeats,
                          type_list<Out...>, type_list<In...>, std::index_sequence<O...>, std::index_sequence<I...>) {
  constexpr std::size_t outs = sizeof...(Out);
  (void)repeats;
  [&](pack<In, W>... in) {
    const auto finish = [&](pack<Out, W>... out) {
      for (int w = 0; w < W; ++w)
        f.apply(out.of[w]..., in.of[w]...);
      ((*reinterpret_cast<pack<Out, W> *>(reinterpret_cast<Out *>(data[O]) + offsets[O]) = out), ...);
    };
    finish(pack<Out, W>{}...);
  }(load_pack<W, In>(data[outs + I], offsets[outs + I], repeats[outs + I])...);
}

/// Divides by a number from 1 to 2^31 - 1, which does not change: a product and a shift, where devices divide in
/// software (T. Granlund, P. Montgomery, "Division by invariant integers using multiplication", PLDI 1994, section 4).
class invariant_divisor {
public:
  explicit invariant_divisor(std::uint32_t by) : by_(by) {
    while (shift_ < 31 && (std::uint32_t(1) << shift_) < by)
      ++shift_;
    factor_ = static_cast<std::uint32_t>(((std::uint64_t(1) << 32) * ((std::uint64_t(1) << shift_) - by)) / by + 1);
  }
  WINDLASS_FN std::uint32_t by() const { return by_; }
  /// Returns n / by(), for an n below 2^31.
  WINDLASS_FN std::uint32_t quotient(std::uint32_t n) const {
    const auto high = static_cast<std::uint32_t>((std::uint64_t(n) * factor_) >> 32);
    return (high + n) >> shift_;
  }

private:
  std::uint32_t by_, factor_ = 0, shift_ = 0;
};

/// Computes W elements of the innermost dimension at a time, of one or two dimensions; `count` counts such groups, of
/// which `columns` are in a row.
template <class F, int W, int N>
__global__ void map_rows_kernel(F f, loop_nest<N> nest, invariant_divisor columns, std::uint32_t count) {
  const int inner = nest.rank - 1;
  bool repeats[N];
  for (int k = 0; k < N; ++k)
    repeats[k] = nest.strides[k][inner] == 0;
  for (std::uint32_t i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x) {
    const std::uint32_t row = columns.quotient(i), column = i - row * columns.by();
    std::int64_t offsets[N];
    for (int k = 0; k < N; ++k)
      offsets[k] =
          (inner == 0 ? 0 : std::int64_t(row) * nest.strides[k][0]) + (repeats[k] ? 0 : std::int64_t(column) * W);
    map_pack<F, W>(f, nest.data, offsets, repeats, typename F::outputs(), typename F::inputs(),
                   std::make_index_sequence<F::outputs::size>(), std::make_index_sequence<F::inputs::size>());
  }
}

/// The same for any number of dimensions. Index is 32 bits wide where that is enough.
template <class F, int W, class Index, int N> __global__ void map_kernel(F f, loop_nest<N> nest, std::int64_t count) {
  const int inner = nest.rank - 1;
  bool repeats[N];
  for (int k = 0; k < N; ++k)
    repeats[k] = nest.strides[k][inner] == 0;
  for (std::int64_t i = blockIdx.x * std::int64_t(blockDim.x) + threadIdx.x; i < count;
       i += std::int64_t(gridDim.x) * blockDim.x) {
    Index rest = static_cast<Index>(i);
    std::int64_t offsets[N] = {};
    for (int d = inner; d >= 0; --d) {
      const Index size = static_cast<Index>(d == inner ? nest.sizes[d] / W : nest.sizes[d]);
      const Index at = d == 0 ? rest : rest % size;
      rest = d == 0 ? 0 : rest / size;
      for (int k = 0; k < N; ++k)
        offsets[k] += std::int64_t(at) * (d == inner ? W : 1) * nest.strides[k][d];
    }
    map_pack<F, W>(f, nest.data, offsets, repeats, typename F::outputs(), typename F::inputs(),
                   std::make_index_sequence<F::outputs::size>(), std::make_index_sequence<F::inputs::size>());
  }
}

template <class... T> constexpr std::int64_t widest(type_list<T...>) {
  std::int64_t bytes = 1;
  ((bytes = std::max<std::int64_t>(bytes, sizeof(T))), ...);
  return bytes;
}

template <int N, class... T> void put_widths(std::int64_t (&widths)[N], int first, type_list<T...>) {
  ((widths[first++] = sizeof(T)), ...);
}

/// Returns whether groups of `width` neighbours are whole and aligned in every operand.
template <class F, int N> bool has_packs(const loop_nest<N> &nest, int width) {
  std::int64_t bytes[N];
  put_widths<N>(bytes, 0, typename F::outputs());
  put_widths<N>(bytes, F::outputs::size, typename F::inputs());
  const int inner = nest.rank - 1;
  bool has = nest.sizes[inner] % width == 0;
  for (int k = 0; k < N && has; ++k) {
    const bool repeats = nest.strides[k][inner] == 0 && k >= F::outputs::size;
    has = repeats || nest.strides[k][inner] == 1;
    if (repeats)
      continue;
    has = has && reinterpret_cast<std::uintptr_t>(nest.data[k]) % static_cast<std::uintptr_t>(bytes[k] * width) == 0;
    for (int d = 0; d < inner; ++d)
      has = has && nest.strides[k][d] % width == 0;
  }
  return has;
}

/// Runs `f` over a simplified nest.
template <class F, int N> status map_on_device(const stream &s, const F &f, const loop_nest<N> &nest) {
  // The 16 bytes of one access of the widest operand, but no more than eight elements, which are kept in registers.
  constexpr std::int64_t bytes = std::max(widest(typename F::outputs()), widest(typename F::inputs()));
  constexpr int width = static_cast<int>(bytes > 1 ? 16 / bytes : 8);
  const std::int64_t count = nest.elements();
  if (count == 0)
    return {};
  constexpr std::int64_t most = std::int64_t(1) << 31; // numbers below it have 32 bits, and a grid's step does not wrap
  const std::int64_t groups = count / width;
  if (has_packs<F>(nest, width) && groups < most) {
    const unsigned blocks = cuda::blocks_for(groups);
    if (nest.rank > 2)
      return cuda::launch(s, blocks, cuda::block_threads, map_kernel<F, width, std::uint32_t, N>, f, nest, groups);
    const invariant_divisor columns(static_cast<std::uint32_t>(nest.sizes[nest.rank - 1] / width));
    return cuda::launch(s, blocks, cuda::block_threads, map_rows_kernel<F, width, N>, f, nest, columns,
                        static_cast<std::uint32_t>(groups));
  }
  const unsigned blocks = cuda::blocks_for(count);
  return count < most
             ? cuda::launch(s, blocks, cuda::block_threads, map_kernel<F, 1, std::uint32_t, N>, f, nest, count)
             : cuda::launch(s, blocks, cuda::block_threads, map_kernel<F, 1, std::uint64_t, N>, f, nest, count);
}

} // namespace windlass::rt::detail

#endif
