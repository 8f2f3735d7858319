// copy, fill, constant and iota.
#include "kernel.h"

#include "windlass/rt/map.h"

#include "windlass/rt/detail/convert.h"

namespace windlass::rt {

namespace cuda {
namespace {

/// Calls f with a value of the C++ type of `type`.
template <class F> status with_type(element_type type, F f) {
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
  return internal_error("unknown element type");
}

using detail::convert;
using detail::converter;
using detail::filler;
using detail::nest_of;

template <class T> status copy_as(stream &s, const detail::loop_nest<2> &nest) {
  return detail::map_on_device(s, converter<T, T>(), nest);
}

/// out[.., i, ..] = start + step * i for the elements in row-major order, of which `inner` share an index.
template <class T>
__global__ void count_kernel(T *out, sequence places, std::int64_t inner, std::int64_t size, double start,
                             double step) {
  for (std::int64_t i = grid_thread(); i < places.count(); i += grid_threads())
    out[places.offset(i)] = convert<T>(start + step * static_cast<double>(i / inner % size));
}

status fill_now(stream &s, const detail::loop_nest<1> &nest, element_type type, double value) {
  return with_type(type, [&](auto t) {
    using T = decltype(t);
    const filler<T> fill_one = {convert<T>(value)};
    if (!s.is_on_host())
      return detail::map_on_device(s, fill_one, nest);
    detail::map_now(fill_one, nest, s.threads());
    return status();
  });
}

} // namespace

status clear(stream &s, const view &out) { return fill_now(s, nest_of<1>({&out}), out.type, 0); }

} // namespace cuda

status copy(stream &s, const view &out, const view &in) {
  if (!cuda::has_same_sizes(out, in))
    return internal_error("copy between views of different sizes");
  const detail::loop_nest<2> nest = detail::nest_of<2>({&out, &in});
  return s.submit({"copy", 0, bytes_of({out, in}), {out.elements()}},
                  [nest, to = out.type, from = in.type, &s]() -> status {
                    const std::int64_t bytes = size_of(to);
                    if (to != from)
                      return cuda::with_type(to, [&](auto t) {
                        return cuda::with_type(from, [&](auto f) {
                          return detail::map_on_device(s, detail::converter<decltype(t), decltype(f)>(), nest);
                        });
                      });
                    if (nest.rank == 1 && nest.strides[0][0] == 1 && nest.strides[1][0] == 1)
                      return cuda::check(cudaMemcpyAsync(nest.data[0], nest.data[1],
                                                         static_cast<std::size_t>(nest.sizes[0] * bytes),
                                                         cudaMemcpyDefault, cuda::native(s)),
                                         "a copy");
                    switch (bytes) {
                    case 8:
                      return cuda::copy_as<std::int64_t>(s, nest);
                    case 4:
                      return cuda::copy_as<std::int32_t>(s, nest);
                    case 2:
                      return cuda::copy_as<std::uint16_t>(s, nest);
                    default:
                      return cuda::copy_as<std::uint8_t>(s, nest);
                    }
                  });
}

status fill(stream &s, const view &out, double value) {
  const detail::loop_nest<1> nest = detail::nest_of<1>({&out});
  return s.submit({"fill", 0, bytes_of({out}), {out.elements()}},
                  [nest, type = out.type, value, &s]() -> status { return cuda::fill_now(s, nest, type, value); });
}

status constant(stream &s, const view &out, const void *values) {
  return s.submit({"constant", 0, bytes_of({out}), {out.elements()}}, [out, values, &s]() -> status {
    return detail::copy_to_device(s, out.data, static_cast<const std::byte *>(values),
                                  out.elements() * size_of(out.type));
  });
}

status iota(stream &s, const view &out, std::int32_t dim, double start, double step) {
  if (dim < 0 || dim >= out.rank)
    return internal_error("iota along a dimension that the view does not have");
  return s.submit({"iota", 0, bytes_of({out}), {out.elements()}}, [out, dim, start, step, &s]() -> status {
    std::int64_t inner = 1;
    for (int d = dim + 1; d < out.rank; ++d)
      inner *= out.sizes[d];
    return cuda::with_type(out.type, [&](auto t) {
      using T = decltype(t);
      return cuda::launch(s, cuda::blocks_for(out.elements()), cuda::block_threads, cuda::count_kernel<T>, out.as<T>(),
                          detail::sequence(out, 0, out.rank), std::max<std::int64_t>(inner, 1), out.sizes[dim], start,
                          step);
    });
  });
}

} // namespace windlass::rt
