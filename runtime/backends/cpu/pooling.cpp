// Maximum and mean of windows. Threads divide the planes, so that no two of them meet in one element.
#include "clear.h"
#include "rows.h"

#include "windlass/rt/kernels.h"

#include "windlass/rt/detail/window_plan.h"

#include <limits>
#include <string>

namespace windlass::rt {

namespace {

using detail::window_plan;

struct call {
  window_plan plan; ///< its x is the input, or the input's gradient where that is written
  float *x, *y;     ///< y is the result or its gradient
  bool accumulate, counts_pads;
  const float *read = nullptr; ///< the input, where x is its gradient
  detail::window_strides of_read;

  /// Calls f(offset of x, offset of y, plane) for each plane.
  template <class F> void for_planes(std::int32_t threads, F f) const {
    const std::int64_t width = plan.out_plane() * plan.taps();
    cpu::for_rows(threads, plan.batch * plan.groups, width,
                  [&](std::int64_t plane) { f(offset_of(plan.x, plane), offset_of(plan.y, plane), plane); });
  }
  std::int64_t offset_of(const detail::window_strides &of, std::int64_t plane) const {
    return plane / plan.groups * of.outer + plane % plan.groups * of.channel;
  }
  /// Calls f(offset of x, offset of y, count, distance in x, first output) for the runs of all taps.
  template <class F> void for_runs(F f) const {
    for (std::int64_t tap = 0; tap < plan.taps(); ++tap)
      detail::for_window_runs(
          plan, tap, 0, plan.out_plane(),
          [&](std::int64_t offset, std::int64_t column, std::int64_t count) {
            f(offset, plan.y_offset(column), count, plan.axes[2].stride * plan.x.spatial[2], column);
          },
          [](std::int64_t, std::int64_t) {});
  }
  /// Calls f(offset, output) for the outputs of a plane.
  template <class F> void for_outputs(F f) const {
    const std::int64_t width = plan.axes[2].out, step = plan.y.spatial[2];
    for (std::int64_t line = 0; line < plan.out_plane(); line += width) {
      const std::int64_t offset = plan.y_offset(line);
      for (std::int64_t i = 0; i < width; ++i)
        f(offset + i * step, line + i);
    }
  }
  void max(std::int32_t threads) const {
    for_planes(threads, [&](std::int64_t in, std::int64_t out, std::int64_t) {
      for_outputs(
          [&](std::int64_t offset, std::int64_t) { y[out + offset] = -std::numeric_limits<float>::infinity(); });
      for_runs([&](std::int64_t from, std::int64_t to, std::int64_t count, std::int64_t step, std::int64_t) {
        for (std::int64_t i = 0; i < count; ++i) {
          const float value = x[in + from + i * step];
          float &most = y[out + to + i * plan.y.spatial[2]];
          most = ((value > most) | (value != value)) ? value : most;
        }
      });
    });
  }

  /// Returns the offset in x of the first of the largest elements, in `plane`, of an output's window.
  std::int64_t find_largest(const float *plane, std::int64_t output) const {
    const auto &[a0, a1, a2] = plan.axes;
    const std::int64_t o2 = output % a2.out, o1 = output / a2.out % a1.out, o0 = output / a2.out / a1.out;
    std::int64_t largest = 0;
    bool has_any = false;
    float most = 0;
    for (std::int64_t t0 = a0.first_tap(o0); t0 < a0.last_tap(o0); ++t0)
      for (std::int64_t t1 = a1.first_tap(o1); t1 < a1.last_tap(o1); ++t1)
        for (std::int64_t t2 = a2.first_tap(o2); t2 < a2.last_tap(o2); ++t2) {
          const std::int64_t i0 = a0.position(o0, t0), i1 = a1.position(o1, t1), i2 = a2.position(o2, t2);
          const float value = plane[of_read.offset(i0, i1, i2)];
          if (has_any && !(value > most) && !(value != value && most == most))
            continue;
          has_any = true;
          most = value;
          largest = plan.x.offset(i0, i1, i2);
        }
    return largest;
  }
  void max_grad(std::int32_t threads) const {
    for_planes(threads, [&](std::int64_t in, std::int64_t out, std::int64_t plane) {
      if (!accumulate)
        cpu::clear_plane(plan, x + in);
      for_outputs([&](std::int64_t offset, std::int64_t output) {
        x[in + find_largest(read + offset_of(of_read, plane), output)] += y[out + offset];
      });
    });
  }

  /// Returns what a window's sum is multiplied with.
  float share(std::int64_t output) const {
    if (counts_pads)
      return 1.0f / static_cast<float>(plan.taps());
    const std::int64_t width = plan.axes[2].out, height = plan.axes[1].out;
    const std::int64_t o2 = output % width, o1 = output / width % height, o0 = output / width / height;
    return 1.0f / static_cast<float>(plan.taps_inside(o0, o1, o2));
  }
  void average(std::int32_t threads) const {
    for_planes(threads, [&](std::int64_t in, std::int64_t out, std::int64_t) {
      for_outputs([&](std::int64_t offset, std::int64_t) { y[out + offset] = 0; });
      for_runs([&](std::int64_t from, std::int64_t to, std::int64_t count, std::int64_t step, std::int64_t) {
        for (std::int64_t i = 0; i < count; ++i)
          y[out + to + i * plan.y.spatial[2]] += x[in + from + i * step];
      });
      for_outputs([&](std::int64_t offset, std::int64_t output) { y[out + offset] *= share(output); });
    });
  }
  void average_grad(std::int32_t threads) const {
    for_planes(threads, [&](std::int64_t in, std::int64_t out, std::int64_t) {
      if (!accumulate)
        cpu::clear_plane(plan, x + in);
      for_runs([&](std::int64_t to, std::int64_t from, std::int64_t count, std::int64_t step, std::int64_t output) {
        for (std::int64_t i = 0; i < count; ++i)
          x[in + to + i * step] += y[out + from + i * plan.y.spatial[2]] * share(output + i);
      });
    });
  }
};

/// Plans the pooling, or gradient, between x and y.
status plan(call &c, const char *name, const view &y, const view &x, const windows &of) {
  if (y.type != element_type::f32 || x.type != element_type::f32)
    return internal_error(std::string(name) + " takes f32 views only");
  c.x = x.as<float>();
  c.y = y.as<float>();
  return detail::plan_pooling(name, y, x, of, c.plan);
}

status submit(stream &s, const char *name, void (call::*run)(std::int32_t) const, const call &c, const view &y,
              const view &x) {
  return s.submit({name, 0, bytes_of({y, x}) + (c.read == nullptr ? 0 : bytes_of({x})), {y.elements()}},
                  [c, run, threads = s.threads()]() -> status {
                    (c.*run)(threads);
                    return {};
                  });
}

} // namespace

status max_pool(stream &s, const view &y, const view &x, const windows &of) {
  call c = {};
  WINDLASS_TRY(plan(c, "max_pool", y, x, of));
  return submit(s, "max_pool", &call::max, c, y, x);
}

status max_pool_grad(stream &s, const view &dx, const view &dy, const view &x, const windows &of, bool accumulate) {
  call c = {}, reads = {};
  WINDLASS_TRY(plan(reads, "max_pool_grad", dy, x, of));
  WINDLASS_TRY(plan(c, "max_pool_grad", dy, dx, of));
  for (int d = 0; d < x.rank; ++d)
    if (x.sizes[d] != dx.sizes[d])
      return internal_error("max_pool_grad got an input and its gradient of different sizes");
  c.accumulate = accumulate;
  c.read = reads.x;
  c.of_read = reads.plan.x;
  return submit(s, "max_pool_grad", &call::max_grad, c, dy, dx);
}

status average_pool(stream &s, const view &y, const view &x, const windows &of, bool counts_pads) {
  call c = {};
  WINDLASS_TRY(plan(c, "average_pool", y, x, of));
  c.counts_pads = counts_pads;
  return submit(s, "average_pool", &call::average, c, y, x);
}

status average_pool_grad(stream &s, const view &dx, const view &dy, const windows &of, bool counts_pads,
                         bool accumulate) {
  call c = {};
  WINDLASS_TRY(plan(c, "average_pool_grad", dy, dx, of));
  c.counts_pads = counts_pads;
  c.accumulate = accumulate;
  return submit(s, "average_pool_grad", &call::average_grad, c, dy, dx);
}

} // namespace windlass::rt
