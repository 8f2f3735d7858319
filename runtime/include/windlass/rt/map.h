// Element-wise work: a fused scalar function applied over an iteration space.
//
// Emitted code defines one functor per fused group and calls map with it:
//
//   struct fused_3 {
//     using outputs = windlass::rt::type_list<float>;
//     using inputs = windlass::rt::type_list<float, float, bool>;
//     static constexpr const char *name = "mul, select"; // in tables of time
//     WINDLASS_FN static void apply(float &r0, float a0, float a1, bool a2) {
//       const float v0 = windlass::scalar::mul(a0, a1);
//       r0 = windlass::scalar::select(a2, v0, 0.0f);
//     }
//   };
//   WINDLASS_TRY(windlass::rt::map(stream, fused_3{}, {out}, {x, y, mask}));
//
// `outputs` and `inputs` name the C++ types of the elements in the order of the views: float f32, double f64,
// std::int64_t i64, std::int32_t i32, std::uint16_t u16, std::uint8_t u8, bool boolean, detail::bf16 bf16. `apply`
// takes the results by reference, then the arguments by value. A functor may hold constants as members; then `apply` is
// const, not static.
//
// The iteration space is the sizes of the first output; every view has that rank and those sizes, and inputs repeat
// elements by strides of 0. An input may be the very view that is written (in place); other overlaps are not allowed.
// `outputs` holds at least one type. Up to 40 operands fit into one call.
#ifndef WINDLASS_RT_MAP_H
#define WINDLASS_RT_MAP_H

#include "windlass/rt/detail/backend.h"
#include "windlass/rt/detail/half.h"
#include "windlass/rt/detail/team.h"
#include "windlass/rt/scalar.h"
#include "windlass/rt/status.h"
#include "windlass/rt/stream.h"
#include "windlass/rt/view.h"

#include <cstring>
#include <initializer_list>
#include <tuple>
#include <type_traits>
#include <utility>

namespace windlass::rt {

template <class... T> struct type_list {
  static constexpr int size = static_cast<int>(sizeof...(T));
};

namespace detail {

template <class T> constexpr element_type type_of() {
  if constexpr (std::is_same_v<T, float>)
    return element_type::f32;
  else if constexpr (std::is_same_v<T, double>)
    return element_type::f64;
  else if constexpr (std::is_same_v<T, bool>)
    return element_type::boolean;
  else if constexpr (std::is_same_v<T, bf16>)
    return element_type::bf16;
  else if constexpr (std::is_same_v<T, f16>)
    return element_type::f16;
  else if constexpr (std::is_same_v<T, std::uint8_t>)
    return element_type::u8;
  else if constexpr (std::is_same_v<T, std::uint16_t>)
    return element_type::u16;
  else if constexpr (std::is_same_v<T, std::int32_t>)
    return element_type::i32;
  else {
    static_assert(std::is_same_v<T, std::int64_t>, "no element type has this C++ type");
    return element_type::i64;
  }
}

/// N strided operands over one iteration space. Strides count elements.
template <int N> struct loop_nest {
  int rank = 0;
  std::int64_t sizes[max_rank] = {};
  std::byte *data[N] = {};
  std::int64_t strides[N][max_rank] = {};

  std::int64_t elements() const {
    std::int64_t n = 1;
    for (int i = 0; i < rank; ++i)
      n *= sizes[i];
    return n;
  }

  /// Orders the dimensions so that the first operand's strides fall, drops those of size 1, and joins neighbours that
  /// all operands step through alike.
  void simplify() {
    int kept = 0;
    for (int i = 0; i < rank; ++i)
      if (sizes[i] != 1)
        move_dim(i, kept++);
    rank = kept;
    for (int i = 1; i < rank; ++i)
      for (int j = i; j > 0 && strides[0][j - 1] < strides[0][j]; --j)
        swap_dims(j - 1, j);
    int last = 0;
    for (int i = 1; i < rank; ++i) {
      bool joins = true;
      for (int n = 0; n < N; ++n)
        joins = joins && strides[n][last] == strides[n][i] * sizes[i];
      if (joins) {
        sizes[last] *= sizes[i];
        for (int n = 0; n < N; ++n)
          strides[n][last] = strides[n][i];
      } else {
        move_dim(i, ++last);
      }
    }
    if (rank > 0)
      rank = last + 1;
    if (rank == 0) { // a scalar
      rank = 1;
      sizes[0] = 1;
      for (int n = 0; n < N; ++n)
        strides[n][0] = 1;
    }
  }

private:
  void move_dim(int from, int to) {
    sizes[to] = sizes[from];
    for (int n = 0; n < N; ++n)
      strides[n][to] = strides[n][from];
  }
  void swap_dims(int a, int b) {
    std::swap(sizes[a], sizes[b]);
    for (int n = 0; n < N; ++n)
      std::swap(strides[n][a], strides[n][b]);
  }
};

/// The elements that one inner call works on; operands without unit stride pass through buffers of this size.
constexpr std::int64_t map_block = 256;

template <class T> void load_block(T *buffer, const std::byte *data, std::int64_t stride, std::int64_t n) {
  const T *from = reinterpret_cast<const T *>(data);
  if (stride == 0) {
    const T value = *from;
    for (std::int64_t i = 0; i < n; ++i)
      buffer[i] = value;
  } else {
    for (std::int64_t i = 0; i < n; ++i)
      buffer[i] = from[i * stride];
  }
}

template <class F, class... Out, class... In, std::size_t... O, std::size_t... I>
void map_run(const F &f, const loop_nest<sizeof...(Out) + sizeof...(In)> &nest, std::int64_t begin, std::int64_t end,
             type_list<Out...>, type_list<In...>, std::index_sequence<O...>, std::index_sequence<I...>) {
  constexpr std::size_t outs = sizeof...(Out), count = outs + sizeof...(In);
  constexpr std::int64_t element_bytes[count] = {sizeof(Out)..., sizeof(In)...};
  const int inner = nest.rank - 1;
  alignas(64) std::tuple<Out[map_block]...> out_buffers;
  alignas(64) std::tuple<In[map_block]..., char> in_buffers;
  std::int64_t position[max_rank] = {};
  for (std::int64_t rest = begin, d = inner; d >= 0; --d) {
    position[d] = rest % nest.sizes[d];
    rest /= nest.sizes[d];
  }
  bool is_unit[count];
  for (std::size_t k = 0; k < count; ++k)
    is_unit[k] = nest.strides[k][inner] == 1;

  while (begin < end) {
    std::byte *row[count];
    for (std::size_t k = 0; k < count; ++k) {
      std::int64_t offset = 0;
      for (int d = 0; d <= inner; ++d)
        offset += position[d] * nest.strides[k][d];
      row[k] = nest.data[k] + offset * element_bytes[k];
    }
    std::int64_t left = std::min(nest.sizes[inner] - position[inner], end - begin);
    begin += left;
    // An operand that repeats one element along the row fills its buffer once.
    (void)std::initializer_list<int>{
        (nest.strides[outs + I][inner] == 0
             ? (load_block<In>(std::get<I>(in_buffers), row[outs + I], 0, std::min(left, map_block)), 0)
             : 0)...};
    while (left > 0) {
      const std::int64_t n = std::min(left, map_block);
      (void)std::initializer_list<int>{
          (!is_unit[outs + I] && nest.strides[outs + I][inner] != 0
               ? (load_block<In>(std::get<I>(in_buffers), row[outs + I], nest.strides[outs + I][inner], n), 0)
               : 0)...};
      const std::tuple<Out *...> to(is_unit[O] ? reinterpret_cast<Out *>(row[O]) : std::get<O>(out_buffers)...);
      const std::tuple<const In *..., char> from(
          (is_unit[outs + I] ? reinterpret_cast<const In *>(row[outs + I]) : std::get<I>(in_buffers))..., char());
      [&f, n](Out *...r, const In *...a) {
        WINDLASS_SIMD
        for (std::int64_t i = 0; i < n; ++i)
          f.apply(r[i]..., a[i]...);
      }(std::get<O>(to)..., std::get<I>(from)...);
      const auto store = [n](auto *data, const auto *buffer, std::int64_t stride) {
        for (std::int64_t i = 0; i < n; ++i)
          data[i * stride] = buffer[i];
      };
      (void)std::initializer_list<int>{
          (!is_unit[O] ? (store(reinterpret_cast<Out *>(row[O]), std::get<O>(out_buffers), nest.strides[O][inner]), 0)
                       : 0)...};
      for (std::size_t k = 0; k < count; ++k)
        row[k] += n * nest.strides[k][inner] * element_bytes[k];
      left -= n;
    }
    position[inner] = 0;
    for (int d = inner - 1; d >= 0; --d) {
      if (++position[d] < nest.sizes[d])
        break;
      position[d] = 0;
    }
  }
}

/// Runs `f` over a simplified nest with up to `threads` threads.
template <class F, int N> void map_now(const F &f, const loop_nest<N> &nest, std::int32_t threads) {
  static_assert(N == F::outputs::size + F::inputs::size);
  constexpr std::int64_t grain = 8192;
  parallel(threads, nest.elements(), grain, [&](std::int64_t begin, std::int64_t end, std::int32_t) {
    if (begin < end)
      map_run(f, nest, begin, end, typename F::outputs(), typename F::inputs(),
              std::make_index_sequence<F::outputs::size>(), std::make_index_sequence<F::inputs::size>());
  });
}

template <class... T> bool types_match(const view *views, type_list<T...>) {
  std::size_t i = 0;
  return ((views[i++].type == type_of<T>()) && ...);
}
inline bool types_match(const view *, type_list<>) { return true; }

} // namespace detail
} // namespace windlass::rt

// In a program for devices the sources that no device's compiler reads run functions on the host only.
#if defined(WINDLASS_BACKEND_CUDA) && (defined(__CUDACC__) || defined(WINDLASS_CUDA_EMULATED))
#include "windlass/rt/detail/map_cuda.h"
#define WINDLASS_MAPS_ON_DEVICE
#endif

namespace windlass::rt {

/// F as a stream on the host runs it. It is a type of its own because few fused functions run there, and in programs
/// for devices each would be compiled a second time.
template <class F> struct on_host : F {};

namespace detail {

template <class F> struct is_for_host : std::false_type {};
template <class F> struct is_for_host<on_host<F>> : std::true_type {};

/// Makes the loops of `f` over its operands, and describes their work.
template <class F>
status make_map(std::initializer_list<view> outs, std::initializer_list<view> ins,
                loop_nest<F::outputs::size + F::inputs::size> &nest, work &what) {
  constexpr int out_count = F::outputs::size, count = out_count + F::inputs::size;
  static_assert(out_count > 0, "a fused function writes something");
  if (static_cast<int>(outs.size()) != out_count || static_cast<int>(ins.size()) != count - out_count ||
      !types_match(outs.begin(), typename F::outputs()) || !types_match(ins.begin(), typename F::inputs()))
    return internal_error("a fused function got operands of another number or type than it declares");
  const view &space = *outs.begin();
  nest.rank = space.rank;
  for (int d = 0; d < space.rank; ++d)
    nest.sizes[d] = space.sizes[d];
  int k = 0;
  for (const std::initializer_list<view> &list : {outs, ins})
    for (const view &v : list) {
      if (!has_same_sizes(v, space))
        return internal_error("a fused function got an operand whose sizes are not those of its first result");
      nest.data[k] = v.data;
      for (int d = 0; d < v.rank; ++d)
        nest.strides[k][d] = v.strides[d];
      ++k;
    }
  nest.simplify();
  what = {F::name, 0, 0, {space.elements()}, true};
  for (const std::initializer_list<view> &list : {outs, ins})
    what.bytes += bytes_of(list);
  return {};
}

} // namespace detail

/// Applies `f` element by element; see the top of this file.
template <class F> status map(stream &s, F f, std::initializer_list<view> outs, std::initializer_list<view> ins) {
  detail::loop_nest<F::outputs::size + F::inputs::size> nest;
  work what;
  WINDLASS_TRY(detail::make_map<F>(outs, ins, nest, what));
#if defined(WINDLASS_MAPS_ON_DEVICE)
  if constexpr (!detail::is_for_host<F>::value)
    return s.submit(what, [f, nest, &s]() -> status { return detail::map_on_device(s, f, nest); });
  else
#elif defined(WINDLASS_BACKEND_CUDA)
  static_assert(detail::is_for_host<F>::value, "only a device's compiler makes kernels of functions");
#endif
    return s.submit(what, [f, nest, threads = s.threads()]() -> status {
      if constexpr (detail::backend_moves_data)
        detail::map_now(f, nest, threads);
      return {};
    });
}

} // namespace windlass::rt

#endif
