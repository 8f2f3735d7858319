// Convolutions as products of matrices whose tiles are laid out in shared memory as they are read, on the device's f32
// units. A block computes a tile of the result by itself, so that sums have one order.
#include "kernel.h"
#include "tile_sums.h"

#include "windlass/rt/detail/window_plan.h"

namespace windlass::rt {

namespace cuda {
namespace {

using detail::window_axis;
using detail::window_plan;

/// An index of three spatial dims.
struct spot {
  std::int64_t i0, i1, i2;
};
__device__ inline spot spot_of(std::int64_t i, std::int64_t n1, std::int64_t n2) {
  return {i / (n1 * n2), i / n2 % n1, i % n2};
}

/// The operands of a convolution, of which one is computed.
struct convolution_call {
  window_plan plan;
  operand x, w, y;
  bool adds;

  __device__ float read_x(std::int64_t b, std::int64_t group, std::int64_t channel, spot at) const {
    return x.get(b * plan.x.outer + (group * plan.ins + channel) * plan.x.channel + plan.x.offset(at.i0, at.i1, at.i2));
  }
  __device__ std::int64_t w_at(std::int64_t group, std::int64_t out, std::int64_t element) const {
    return (group * plan.outs + out) * plan.w.outer + plan.w_offset(element);
  }
  __device__ std::int64_t y_at(std::int64_t b, std::int64_t group, std::int64_t out, std::int64_t at) const {
    return b * plan.y.outer + (group * plan.outs + out) * plan.y.channel + plan.y_offset(at);
  }
  /// Returns the element of the input that output `at` of a plane reads by an element of the kernel.
  __device__ float read_window(std::int64_t b, std::int64_t group, std::int64_t element, std::int64_t at) const {
    const auto &[a0, a1, a2] = plan.axes;
    const spot tap = spot_of(element % plan.taps(), a1.size, a2.size), out = spot_of(at, a1.out, a2.out);
    const spot in = {a0.position(out.i0, tap.i0), a1.position(out.i1, tap.i1), a2.position(out.i2, tap.i2)};
    if (!a0.has(in.i0) || !a1.has(in.i1) || !a2.has(in.i2))
      return 0;
    return read_x(b, group, element / plan.taps(), in);
  }
  __device__ static void put(const operand &to, std::int64_t at, float value, bool adds) {
    to.set(at, (adds ? to.get(at) : 0.0f) + value);
  }
};

// The products: rows, columns and depth of a group, the factors' elements, and where a result goes.

/// y: kernels by outputs of all samples, over the elements of a kernel.
struct forward_product {
  convolution_call of;
  WINDLASS_FN std::int64_t rows() const { return of.plan.outs; }
  WINDLASS_FN std::int64_t columns() const { return of.plan.batch * of.plan.out_plane(); }
  WINDLASS_FN std::int64_t depth() const { return of.plan.depth(); }
  __device__ float left(std::int64_t group, std::int64_t row, std::int64_t k) const {
    return of.w.get(of.w_at(group, row, k));
  }
  __device__ float right(std::int64_t group, std::int64_t k, std::int64_t column) const {
    return of.read_window(column / of.plan.out_plane(), group, k, column % of.plan.out_plane());
  }
  __device__ void put(std::int64_t group, std::int64_t row, std::int64_t column, float value) const {
    of.put(of.y, of.y_at(column / of.plan.out_plane(), group, row, column % of.plan.out_plane()), value, of.adds);
  }
};

/// dx: channels by elements of all samples, over the elements of the kernels that reach them.
struct data_grad_product {
  convolution_call of;
  WINDLASS_FN std::int64_t rows() const { return of.plan.ins; }
  WINDLASS_FN std::int64_t columns() const { return of.plan.batch * of.plan.in_plane(); }
  WINDLASS_FN std::int64_t depth() const { return of.plan.outs * of.plan.taps(); }
  __device__ float left(std::int64_t group, std::int64_t row, std::int64_t k) const {
    return of.w.get(of.w_at(group, k / of.plan.taps(), row * of.plan.taps() + k % of.plan.taps()));
  }
  __device__ float right(std::int64_t group, std::int64_t k, std::int64_t column) const {
    const auto &[a0, a1, a2] = of.plan.axes;
    const spot tap = spot_of(k % of.plan.taps(), a1.size, a2.size),
               in = spot_of(column % of.plan.in_plane(), a1.in, a2.in);
    const spot out = {a0.output_of(in.i0, tap.i0), a1.output_of(in.i1, tap.i1), a2.output_of(in.i2, tap.i2)};
    if (out.i0 < 0 || out.i1 < 0 || out.i2 < 0)
      return 0;
    return of.y.get(
        of.y_at(column / of.plan.in_plane(), group, k / of.plan.taps(), (out.i0 * a1.out + out.i1) * a2.out + out.i2));
  }
  __device__ void put(std::int64_t group, std::int64_t row, std::int64_t column, float value) const {
    const std::int64_t at = column / of.plan.in_plane() * of.plan.x.outer +
                            (group * of.plan.ins + row) * of.plan.x.channel +
                            of.plan.x_offset(column % of.plan.in_plane());
    of.put(of.x, at, value, of.adds);
  }
};

/// dw: kernels by their elements, over the outputs of all samples.
struct weight_grad_product {
  convolution_call of;
  WINDLASS_FN std::int64_t rows() const { return of.plan.outs; }
  WINDLASS_FN std::int64_t columns() const { return of.plan.depth(); }
  WINDLASS_FN std::int64_t depth() const { return of.plan.batch * of.plan.out_plane(); }
  __device__ float left(std::int64_t group, std::int64_t row, std::int64_t k) const {
    return of.y.get(of.y_at(k / of.plan.out_plane(), group, row, k % of.plan.out_plane()));
  }
  __device__ float right(std::int64_t group, std::int64_t k, std::int64_t column) const {
    return of.read_window(k / of.plan.out_plane(), group, column, k % of.plan.out_plane());
  }
  __device__ void put(std::int64_t group, std::int64_t row, std::int64_t column, float value) const {
    of.put(of.w, of.w_at(group, row, column), value, of.adds);
  }
};

template <class Product>
__global__ void __launch_bounds__(tile_threads) convolution_kernel(Product p, std::int64_t across, std::int64_t items) {
  const std::int64_t down = tiles_of(p.rows());
  for (std::int64_t item = blockIdx.x; item < items; item += gridDim.x) {
    const std::int64_t group = item / (down * across), row = item / across % down * tile, column = item % across * tile;
    const std::int64_t height = p.rows() - row, width = p.columns() - column;
    tile_sums sums;
    sums.add(
        p.depth(), height, width, [&](std::int64_t i, std::int64_t k) { return p.left(group, row + i, k); },
        [&](std::int64_t k, std::int64_t i) { return p.right(group, k, column + i); });
    sums.for_each(height, width, [&](int i, int j, float sum) { p.put(group, row + i, column + j, sum); });
  }
}

template <class Product>
status submit_convolution(stream &s, const char *name, const view &y, const view &x, const view &w, const windows &of,
                          bool accumulate) {
  WINDLASS_TRY(check_views(are_real({y, x, w}), name));
  convolution_call call = {{}, x, w, y, accumulate};
  WINDLASS_TRY(detail::plan_convolution(name, y, x, w, of, call.plan));
  const window_plan &p = call.plan;
  return s.submit(
      {name, p.flops(), bytes_of({y, x, w}), {p.batch * p.out_plane(), p.groups * p.outs, p.depth(), p.groups}},
      [call, &s]() -> status {
        const Product product = {call};
        const std::int64_t across = tiles_of(product.columns()),
                           items = call.plan.groups * tiles_of(product.rows()) * across;
        if (items == 0)
          return {};
        return launch(s, blocks_for_rows(items), tile_threads, convolution_kernel<Product>, product, across, items);
      });
}

} // namespace
} // namespace cuda

status convolution(stream &s, const view &y, const view &x, const view &w, const windows &of, bool accumulate) {
  return cuda::submit_convolution<cuda::forward_product>(s, "convolution", y, x, w, of, accumulate);
}

status convolution_data_grad(stream &s, const view &dx, const view &dy, const view &w, const windows &of,
                             bool accumulate) {
  return cuda::submit_convolution<cuda::data_grad_product>(s, "convolution_data_grad", dy, dx, w, of, accumulate);
}

status convolution_weight_grad(stream &s, const view &dw, const view &dy, const view &x, const windows &of,
                               bool accumulate) {
  return cuda::submit_convolution<cuda::weight_grad_product>(s, "convolution_weight_grad", dy, x, dw, of, accumulate);
}

} // namespace windlass::rt
