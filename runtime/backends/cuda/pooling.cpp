// Maximum and mean of windows, and their gradients. A thread for each element that is written, which gathers what it is
// made of: sums have one order.
#include "kernel.h"

#include "windlass/rt/detail/window_plan.h"

namespace windlass::rt {

namespace cuda {
namespace {

using detail::window_axis;
using detail::window_plan;
using detail::window_strides;

struct pooling {
  window_plan plan; ///< its x is the input, or the input's gradient where that is written
  operand x, y;
  operand read; ///< the input, where x is its gradient
  window_strides of_read;
  bool adds, counts_pads;

  __device__ static std::int64_t plane_of(const window_strides &of, std::int64_t plane, std::int64_t channels) {
    return plane / channels * of.outer + plane % channels * of.channel;
  }
};

/// An output, and the taps of its window that are inside the input.
struct window {
  std::int64_t o0, o1, o2;
  __device__ window(const window_plan &p, std::int64_t output)
      : o0(output / (p.axes[1].out * p.axes[2].out)), o1(output / p.axes[2].out % p.axes[1].out),
        o2(output % p.axes[2].out) {}
  __device__ window(std::int64_t o0, std::int64_t o1, std::int64_t o2) : o0(o0), o1(o1), o2(o2) {}

  /// Calls f(element of the input in three spatial dims) for each of them.
  template <class F> __device__ void each(const window_plan &p, F f) const {
    const auto &[a0, a1, a2] = p.axes;
    for (std::int64_t t0 = a0.first_tap(o0); t0 < a0.last_tap(o0); ++t0)
      for (std::int64_t t1 = a1.first_tap(o1); t1 < a1.last_tap(o1); ++t1)
        for (std::int64_t t2 = a2.first_tap(o2); t2 < a2.last_tap(o2); ++t2)
          f(a0.position(o0, t0), a1.position(o1, t1), a2.position(o2, t2));
  }
  __device__ float share(const pooling &of) const {
    return 1.0f / static_cast<float>(of.counts_pads ? of.plan.taps() : of.plan.taps_inside(o0, o1, o2));
  }
};

template <bool is_max> __global__ void pool_kernel(pooling of) {
  const window_plan &p = of.plan;
  const std::int64_t plane_size = p.out_plane();
  for (std::int64_t i = grid_thread(); i < p.batch * p.groups * plane_size; i += grid_threads()) {
    const std::int64_t plane = i / plane_size, output = i % plane_size;
    const std::int64_t from = pooling::plane_of(p.x, plane, p.groups);
    const window at(p, output);
    float result = is_max ? -std::numeric_limits<float>::infinity() : 0.0f;
    at.each(p, [&](std::int64_t i0, std::int64_t i1, std::int64_t i2) {
      const float value = of.x.get(from + p.x.offset(i0, i1, i2));
      result = is_max ? larger_value::join(value, result) : result + value;
    });
    of.y.set(pooling::plane_of(p.y, plane, p.groups) + p.y_offset(output), is_max ? result : result * at.share(of));
  }
}

/// Returns whether the element is the first of the largest of a window.
__device__ inline bool is_largest(const pooling &of, std::int64_t from, const window &at, std::int64_t i0,
                                  std::int64_t i1, std::int64_t i2) {
  std::int64_t largest = -1;
  float most = 0;
  at.each(of.plan, [&](std::int64_t j0, std::int64_t j1, std::int64_t j2) {
    const std::int64_t place = of.of_read.offset(j0, j1, j2);
    const float value = of.read.get(from + place);
    if (largest < 0 || value > most || (value != value && most == most)) {
      largest = (j0 * of.plan.axes[1].in + j1) * of.plan.axes[2].in + j2;
      most = value;
    }
  });
  return largest == (i0 * of.plan.axes[1].in + i1) * of.plan.axes[2].in + i2;
}

template <bool is_max> __global__ void pool_grad_kernel(pooling of) {
  const window_plan &p = of.plan;
  const auto &[a0, a1, a2] = p.axes;
  const std::int64_t plane_size = p.in_plane();
  for (std::int64_t i = grid_thread(); i < p.batch * p.groups * plane_size; i += grid_threads()) {
    const std::int64_t plane = i / plane_size, element = i % plane_size;
    const std::int64_t i0 = element / (a1.in * a2.in), i1 = element / a2.in % a1.in, i2 = element % a2.in;
    const std::int64_t from = is_max ? pooling::plane_of(of.of_read, plane, p.groups) : 0,
                       slopes = pooling::plane_of(p.y, plane, p.groups);
    float sum = 0;
    // From the last tap to the first, so that outputs come in order.
    for (std::int64_t t0 = a0.size; t0-- > 0;) {
      const std::int64_t o0 = a0.output_of(i0, t0);
      for (std::int64_t t1 = o0 < 0 ? 0 : a1.size; t1-- > 0;) {
        const std::int64_t o1 = a1.output_of(i1, t1);
        for (std::int64_t t2 = o1 < 0 ? 0 : a2.size; t2-- > 0;) {
          const std::int64_t o2 = a2.output_of(i2, t2);
          if (o2 < 0)
            continue;
          const window at(o0, o1, o2);
          const float slope = of.y.get(slopes + p.y.offset(o0, o1, o2));
          if (!is_max)
            sum += slope * at.share(of);
          else if (is_largest(of, from, at, i0, i1, i2))
            sum += slope;
        }
      }
    }
    const std::int64_t to = pooling::plane_of(p.x, plane, p.groups) + p.x.offset(i0, i1, i2);
    of.x.set(to, (of.adds ? of.x.get(to) : 0.0f) + sum);
  }
}

/// Plans pooling between `y`, or its gradient, and `x`; where that is the input's gradient, `read` is the input.
status plan_pool(const char *name, const view &y, const view &x, const view &read, const windows &where, pooling &of) {
  WINDLASS_TRY(check_views(are_real({y, x, read}) && (read.is_absent() || has_same_sizes(x, read)), name));
  if (!read.is_absent()) {
    WINDLASS_TRY(detail::plan_pooling(name, y, read, where, of.plan));
    of.of_read = of.plan.x;
  }
  return detail::plan_pooling(name, y, x, where, of.plan);
}

status submit_pool(stream &s, const char *name, void (*kernel)(pooling), const pooling &of, const view &y,
                   const view &x, const view &read, std::int64_t threads) {
  return s.submit({name, 0, bytes_of({y, x, read}), {y.elements()}}, [=, &s]() -> status {
    return threads == 0 ? ok_status() : launch(s, blocks_for(threads), block_threads, kernel, of);
  });
}

} // namespace
} // namespace cuda

status max_pool(stream &s, const view &y, const view &x, const windows &of) {
  cuda::pooling call = {{}, x, y, view(), {}, false, false};
  WINDLASS_TRY(cuda::plan_pool("max_pool", y, x, {}, of, call));
  return cuda::submit_pool(s, "max_pool", cuda::pool_kernel<true>, call, y, x, {}, y.elements());
}

status max_pool_grad(stream &s, const view &dx, const view &dy, const view &x, const windows &of, bool accumulate) {
  cuda::pooling call = {{}, dx, dy, x, {}, accumulate, false};
  WINDLASS_TRY(cuda::plan_pool("max_pool_grad", dy, dx, x, of, call));
  return cuda::submit_pool(s, "max_pool_grad", cuda::pool_grad_kernel<true>, call, dy, dx, x, dx.elements());
}

status average_pool(stream &s, const view &y, const view &x, const windows &of, bool counts_pads) {
  cuda::pooling call = {{}, x, y, view(), {}, false, counts_pads};
  WINDLASS_TRY(cuda::plan_pool("average_pool", y, x, {}, of, call));
  return cuda::submit_pool(s, "average_pool", cuda::pool_kernel<false>, call, y, x, {}, y.elements());
}

status average_pool_grad(stream &s, const view &dx, const view &dy, const windows &of, bool counts_pads,
                         bool accumulate) {
  cuda::pooling call = {{}, dx, dy, view(), {}, accumulate, counts_pads};
  WINDLASS_TRY(cuda::plan_pool("average_pool_grad", dy, dx, {}, of, call));
  return cuda::submit_pool(s, "average_pool_grad", cuda::pool_grad_kernel<false>, call, dy, dx, {}, dx.elements());
}

} // namespace windlass::rt
