// copy, fill, constant and iota.
#include "windlass/rt/kernels.h"
#include "windlass/rt/map.h"

#include "windlass/rt/detail/convert.h"

namespace windlass::rt {

namespace {

/// Calls f with a value of the C++ type of `type`.
template <class F> void with_type(element_type type, F f) {
  switch (type) {
  case element_type::f32:
    return f(float());
  case element_type::f64:
    return f(double());
  case element_type::bf16:
    return f(detail::bf16());
  case element_type::f16:
    return f(detail::f16());
  case element_type::i64:
    return f(std::int64_t());
  case element_type::i32:
    return f(std::int32_t());
  case element_type::u16:
    return f(std::uint16_t());
  case element_type::u8:
    return f(std::uint8_t());
  case element_type::boolean:
    return f(bool());
  }
}

using detail::convert;
using detail::converter;
using detail::filler;
using detail::nest_of;

/// Copies when the input's unit stride is in another dim than the output's: squares that stay in the cache.
template <class T> bool copy_transposed(const detail::loop_nest<2> &nest, std::int32_t threads) {
  constexpr std::int64_t tile = 32;
  const int inner = nest.rank - 1;
  int other = -1;
  for (int d = 0; d < inner; ++d)
    if (nest.strides[1][d] == 1)
      other = d;
  if (other < 0 || nest.strides[0][inner] != 1 || nest.sizes[inner] < 8 || nest.sizes[other] < 8)
    return false;
  detail::loop_nest<2> tiles = nest; // one step for each square
  tiles.sizes[inner] = (nest.sizes[inner] + tile - 1) / tile;
  tiles.sizes[other] = (nest.sizes[other] + tile - 1) / tile;
  detail::parallel(threads, tiles.elements(), 16, [&](std::int64_t begin, std::int64_t end, std::int32_t) {
    for (std::int64_t number = begin; number < end; ++number) {
      std::int64_t rest = number, to = 0, from = 0, width = 0, height = 0;
      for (int d = inner; d >= 0; --d) {
        std::int64_t at = rest % tiles.sizes[d];
        rest /= tiles.sizes[d];
        if (d == inner || d == other) {
          at *= tile;
          (d == inner ? width : height) = std::min(tile, nest.sizes[d] - at);
        }
        to += at * nest.strides[0][d];
        from += at * nest.strides[1][d];
      }
      T *out = reinterpret_cast<T *>(nest.data[0]) + to;
      const T *in = reinterpret_cast<const T *>(nest.data[1]) + from;
      const std::int64_t out_step = nest.strides[0][other], in_step = nest.strides[1][inner];
      T square[tile][tile];
      for (std::int64_t i = 0; i < width; ++i)
        for (std::int64_t j = 0; j < height; ++j)
          square[j][i] = in[i * in_step + j];
      for (std::int64_t j = 0; j < height; ++j)
        for (std::int64_t i = 0; i < width; ++i)
          out[j * out_step + i] = square[j][i];
    }
  });
  return true;
}

template <class T> void copy_strided(const detail::loop_nest<2> &nest, std::int32_t threads) {
  if (!copy_transposed<T>(nest, threads))
    detail::map_now(converter<T, T>(), nest, threads);
}

} // namespace

status copy(stream &s, const view &out, const view &in) {
  if (!has_same_sizes(out, in))
    return internal_error("copy between views of different sizes");
  const detail::loop_nest<2> nest = nest_of<2>({&out, &in});
  return s.submit(
      {"copy", 0, bytes_of({out, in}), {out.elements()}},
      [nest, to = out.type, from = in.type, threads = s.threads(), moved = out.elements() * size_of(out.type),
       link = s.link()]() -> status {
        const std::int64_t bytes = size_of(to);
        const double begin = clock_seconds();
        if (to != from) {
          with_type(to, [&](auto t) {
            with_type(from, [&](auto f) { detail::map_now(converter<decltype(t), decltype(f)>(), nest, threads); });
          });
        } else if (nest.rank == 1 && nest.strides[0][0] == 1 && nest.strides[1][0] == 1) {
          detail::parallel(threads, nest.sizes[0] * bytes, 1 << 16, [&](std::int64_t begin, std::int64_t end, int) {
            std::memcpy(nest.data[0] + begin, nest.data[1] + begin, static_cast<std::size_t>(end - begin));
          });
        } else if (bytes == 8) {
          copy_strided<std::int64_t>(nest, threads);
        } else if (bytes == 4) {
          copy_strided<std::int32_t>(nest, threads);
        } else if (bytes == 2) {
          copy_strided<std::uint16_t>(nest, threads);
        } else {
          copy_strided<std::uint8_t>(nest, threads);
        }
        if (link)
          link->wait(begin, moved);
        return {};
      });
}

status fill(stream &s, const view &out, double value) {
  const detail::loop_nest<1> nest = nest_of<1>({&out});
  return s.submit({"fill", 0, bytes_of({out}), {out.elements()}},
                  [nest, type = out.type, value, threads = s.threads()]() -> status {
                    with_type(type, [&](auto t) {
                      using T = decltype(t);
                      detail::map_now(filler<T>{convert<T>(value)}, nest, threads);
                    });
                    return {};
                  });
}

status constant(stream &s, const view &out, const void *values) {
  return s.submit({"constant", 0, bytes_of({out}), {out.elements()}}, [out, values]() -> status {
    std::memcpy(out.data, values, static_cast<std::size_t>(out.elements() * size_of(out.type)));
    return {};
  });
}

status iota(stream &s, const view &out, std::int32_t dim, double start, double step) {
  if (dim < 0 || dim >= out.rank)
    return internal_error("iota along a dimension that the view does not have");
  return s.submit({"iota", 0, bytes_of({out}), {out.elements()}},
                  [out, dim, start, step, threads = s.threads()]() -> status {
                    // One fill per index of `dim`.
                    view slice = out;
                    slice.sizes[dim] = 1;
                    with_type(out.type, [&](auto t) {
                      using T = decltype(t);
                      const view base = slice;
                      for (std::int64_t i = 0; i < out.sizes[dim]; ++i) {
                        slice.data = base.data + i * out.strides[dim] * size_of(out.type);
                        detail::map_now(filler<T>{convert<T>(start + step * static_cast<double>(i))},
                                        nest_of<1>({&slice}), threads);
                      }
                    });
                    return {};
                  });
}

} // namespace windlass::rt
