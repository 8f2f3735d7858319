// Convolutions as products of matrices that are laid out tile by tile, and by direct loops where kernels have one
// channel. Work is cut by the operands' sizes only, so that results do not depend on the number of threads.
#include "clear.h"
#include "gemm.h"
#include "rows.h"

#include "windlass/rt/kernels.h"

#include "windlass/rt/detail/team.h"
#include "windlass/rt/detail/window_plan.h"

#include <cstring>
#include <string>

namespace windlass::rt {

namespace {

using cpu::matrix;
using detail::convolution_tile;
using detail::window_plan;

/// The most output channels of a product.
constexpr std::int64_t most_outs = 128;
/// The floating-point operations that are worth a thread of the team.
constexpr std::int64_t flops_per_thread = 1 << 19;

std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

/// Items [begin, begin + count).
struct range {
  std::int64_t begin, count;
};

/// One of the three products of a convolution.
struct call {
  window_plan plan;
  float *x, *w, *y;
  bool accumulate;
  float *scratch;

  /// The positions of a plane of the result, and the elements of a kernel, that lie one `step` from each other in
  /// memory: blocks never cross the end of such a line.
  std::int64_t y_line, y_step, w_line, w_step;

  /// Returns the block that begins at `begin`: at most `most` items, none behind `end` or the end of the line.
  static range block(std::int64_t begin, std::int64_t end, std::int64_t line, std::int64_t most) {
    return {begin, std::min({most, end - begin, line - begin % line})};
  }

  float *x_plane(std::int64_t b, std::int64_t group, std::int64_t channel) const {
    return x + b * plan.x.outer + (group * plan.ins + channel) * plan.x.channel;
  }
  /// The result's outputs `columns` of the channels `outs` of a group, as [outs, columns].
  matrix y_tile(std::int64_t b, std::int64_t group, range outs, range columns) const {
    return {y + b * plan.y.outer + (group * plan.outs + outs.begin) * plan.y.channel + plan.y_offset(columns.begin),
            outs.count, columns.count, plan.y.channel, y_step};
  }
  /// The elements `rows` of the kernels `outs` of a group, as [outs, rows].
  matrix w_tile(std::int64_t group, range outs, range rows) const {
    return {w + (group * plan.outs + outs.begin) * plan.w.outer + plan.w_offset(rows.begin), outs.count, rows.count,
            plan.w.outer, w_step};
  }

  /// Lays out the input's elements that `columns` read by the elements `rows` of a kernel, as [rows, columns].
  matrix lay_out(float *buffer, std::int64_t b, std::int64_t group, range rows, range columns) const {
    const std::int64_t step = plan.axes[2].stride * plan.x.spatial[2];
    for (std::int64_t r = 0; r < rows.count; ++r) {
      const std::int64_t row = rows.begin + r;
      const float *from = x_plane(b, group, row / plan.taps());
      float *to = buffer + r * columns.count;
      detail::for_window_runs(
          plan, row % plan.taps(), columns.begin, columns.begin + columns.count,
          [&](std::int64_t offset, std::int64_t column, std::int64_t count) {
            if (step == 1) {
              std::memcpy(to + column, from + offset, static_cast<std::size_t>(count) * sizeof(float));
              return;
            }
            for (std::int64_t i = 0; i < count; ++i)
              to[column + i] = from[offset + i * step];
          },
          [&](std::int64_t column, std::int64_t count) { std::fill_n(to + column, count, 0.0f); });
    }
    return {buffer, rows.count, columns.count, columns.count, 1};
  }
  /// Adds a matrix that is laid out in that way to the input's elements.
  void add_back(const float *buffer, std::int64_t b, std::int64_t group, range rows, range columns) const {
    const std::int64_t step = plan.axes[2].stride * plan.x.spatial[2];
    for (std::int64_t r = 0; r < rows.count; ++r) {
      const std::int64_t row = rows.begin + r;
      float *to = x_plane(b, group, row / plan.taps());
      const float *from = buffer + r * columns.count;
      detail::for_window_runs(
          plan, row % plan.taps(), columns.begin, columns.begin + columns.count,
          [&](std::int64_t offset, std::int64_t column, std::int64_t count) {
            for (std::int64_t i = 0; i < count; ++i)
              to[offset + i * step] += from[column + i];
          },
          [](std::int64_t, std::int64_t) {});
    }
  }

  /// Calls f(piece, the thread's scratch) for all pieces.
  template <class F> void for_pieces(std::int32_t threads, std::int64_t pieces, F f) const {
    const std::int64_t floats = std::min(plan.out_plane(), convolution_tile) * std::min(plan.depth(), convolution_tile);
    const std::int32_t parts = detail::part_count(plan.flops(), flops_per_thread, threads);
    detail::for_parts(pieces, parts, [&](std::int64_t begin, std::int64_t end, std::int32_t part) {
      for (std::int64_t piece = begin; piece < end; ++piece)
        f(piece, scratch + part * floats);
    });
  }

  void forward(std::int32_t threads) const {
    const std::int64_t line = y_line, rows = w_line;
    const std::int64_t blocks = ceil_div(plan.outs, most_outs), lines = plan.out_plane() / line,
                       columns = ceil_div(line, convolution_tile);
    for_pieces(threads, plan.batch * plan.groups * blocks * lines * columns, [&](std::int64_t piece, float *buffer) {
      const std::int64_t column = piece % columns, at = piece / columns % lines;
      const std::int64_t out = piece / columns / lines % blocks, image = piece / columns / lines / blocks;
      const std::int64_t b = image / plan.groups, group = image % plan.groups;
      const range outs = block(out * most_outs, plan.outs, plan.outs, most_outs);
      const range outputs = block(at * line + column * convolution_tile, plan.out_plane(), line, convolution_tile);
      for (std::int64_t row = 0; row < plan.depth();) {
        const range part = block(row, plan.depth(), rows, convolution_tile);
        cpu::gemm(y_tile(b, group, outs, outputs), w_tile(group, outs, part), lay_out(buffer, b, group, part, outputs),
                  1.0f, row > 0 || accumulate ? 1.0f : 0.0f);
        row += part.count;
      }
    });
  }

  /// Each piece has channels of the input of its own.
  void data_grad(std::int32_t threads) const {
    const std::int64_t line = y_line, rows = w_line, taps = plan.taps();
    const std::int64_t channels = std::max<std::int64_t>(convolution_tile / taps, 1),
                       blocks = ceil_div(plan.ins, channels);
    for_pieces(threads, plan.batch * plan.groups * blocks, [&](std::int64_t piece, float *buffer) {
      const std::int64_t first = piece % blocks * channels, last = std::min(first + channels, plan.ins);
      const std::int64_t b = piece / blocks / plan.groups, group = piece / blocks % plan.groups;
      if (!accumulate)
        for (std::int64_t channel = first; channel < last; ++channel)
          cpu::clear_plane(plan, x_plane(b, group, channel));
      for (std::int64_t column = 0; column < plan.out_plane();) {
        const range outputs = block(column, plan.out_plane(), line, convolution_tile);
        for (std::int64_t row = first * taps; row < last * taps;) {
          const range part = block(row, last * taps, rows, convolution_tile);
          const range outs = {0, plan.outs};
          const matrix tile = {buffer, part.count, outputs.count, outputs.count, 1};
          cpu::gemm(tile, w_tile(group, outs, part).transposed(), y_tile(b, group, outs, outputs), 1.0f, 0.0f);
          add_back(buffer, b, group, part, outputs);
          row += part.count;
        }
        column += outputs.count;
      }
    });
  }

  /// Each piece has elements of the kernels of its own.
  void weight_grad(std::int32_t threads) const {
    const std::int64_t line = y_line, rows = w_line, blocks = ceil_div(plan.outs, most_outs);
    // Enough pieces for the threads of a processor, of not too few rows.
    constexpr std::int64_t pieces = 16, least = 16;
    const std::int64_t height = std::clamp(ceil_div(plan.depth(), pieces), least, convolution_tile);
    const std::int64_t lines = plan.depth() / rows, parts = ceil_div(rows, height);
    for_pieces(threads, plan.groups * blocks * lines * parts, [&](std::int64_t piece, float *buffer) {
      const std::int64_t at = piece / parts % lines, group = piece / parts / lines / blocks;
      const range part = block(at * rows + piece % parts * height, plan.depth(), rows, height);
      const range outs = block(piece / parts / lines % blocks * most_outs, plan.outs, plan.outs, most_outs);
      bool adds = accumulate;
      for (std::int64_t b = 0; b < plan.batch; ++b)
        for (std::int64_t column = 0; column < plan.out_plane();) {
          const range outputs = block(column, plan.out_plane(), line, convolution_tile);
          cpu::gemm(w_tile(group, outs, part), y_tile(b, group, outs, outputs),
                    lay_out(buffer, b, group, part, outputs).transposed(), 1.0f, adds ? 1.0f : 0.0f);
          adds = true;
          column += outputs.count;
        }
    });
  }

  // Kernels of one channel, which a product would read once for each multiplication.

  /// Calls f(offset of x, offset of y, count, distance in x) for the runs of a tap.
  template <class F> void for_runs(std::int64_t tap, F f) const {
    detail::for_window_runs(
        plan, tap, 0, plan.out_plane(),
        [&](std::int64_t offset, std::int64_t column, std::int64_t count) {
          f(offset, plan.y_offset(column), count, plan.axes[2].stride * plan.x.spatial[2]);
        },
        [](std::int64_t, std::int64_t) {});
  }
  float *y_plane(std::int64_t b, std::int64_t out) const { return y + b * plan.y.outer + out * plan.y.channel; }

  void forward_directly(std::int32_t threads) const {
    const std::int64_t outs = plan.groups * plan.outs;
    for_pieces(threads, plan.batch * outs, [&](std::int64_t piece, float *) {
      const std::int64_t b = piece / outs, out = piece % outs;
      float *to = y_plane(b, out);
      const float *from = x_plane(b, out / plan.outs, 0);
      for (std::int64_t line = 0; line < plan.out_plane() && !accumulate; line += plan.axes[2].out)
        for (std::int64_t i = 0; i < plan.axes[2].out; ++i)
          to[plan.y_offset(line) + i * plan.y.spatial[2]] = 0;
      for (std::int64_t tap = 0; tap < plan.taps(); ++tap) {
        const float factor = w[out * plan.w.outer + plan.w_offset(tap)];
        for_runs(tap, [&](std::int64_t in, std::int64_t at, std::int64_t count, std::int64_t step) {
          WINDLASS_SIMD
          for (std::int64_t i = 0; i < count; ++i)
            to[at + i * plan.y.spatial[2]] += factor * from[in + i * step];
        });
      }
    });
  }

  void data_grad_directly(std::int32_t threads) const {
    for_pieces(threads, plan.batch * plan.groups, [&](std::int64_t piece, float *) {
      const std::int64_t b = piece / plan.groups, group = piece % plan.groups;
      float *to = x_plane(b, group, 0);
      if (!accumulate)
        cpu::clear_plane(plan, to);
      for (std::int64_t out = group * plan.outs; out < (group + 1) * plan.outs; ++out)
        for (std::int64_t tap = 0; tap < plan.taps(); ++tap) {
          const float factor = w[out * plan.w.outer + plan.w_offset(tap)], *from = y_plane(b, out);
          for_runs(tap, [&](std::int64_t in, std::int64_t at, std::int64_t count, std::int64_t step) {
            WINDLASS_SIMD
            for (std::int64_t i = 0; i < count; ++i)
              to[in + i * step] += factor * from[at + i * plan.y.spatial[2]];
          });
        }
    });
  }

  void weight_grad_directly(std::int32_t threads) const {
    for_pieces(threads, plan.groups * plan.outs, [&](std::int64_t out, float *) {
      for (std::int64_t tap = 0; tap < plan.taps(); ++tap) {
        double sum = 0;
        for (std::int64_t b = 0; b < plan.batch; ++b) {
          const float *from = x_plane(b, out / plan.outs, 0), *slope = y_plane(b, out);
          for_runs(tap, [&](std::int64_t in, std::int64_t at, std::int64_t count, std::int64_t step) {
            float run = 0;
#pragma omp simd reduction(+ : run)
            for (std::int64_t i = 0; i < count; ++i)
              run += slope[at + i * plan.y.spatial[2]] * from[in + i * step];
            sum += run;
          });
        }
        float &to = w[out * plan.w.outer + plan.w_offset(tap)];
        to = (accumulate ? to : 0.0f) + static_cast<float>(sum);
      }
    });
  }

  enum class product { forward, data_grad, weight_grad };
  void run(product of, std::int32_t threads) const {
    const bool is_direct = plan.ins == 1;
    switch (of) {
    case product::forward:
      return is_direct ? forward_directly(threads) : forward(threads);
    case product::data_grad:
      return is_direct ? data_grad_directly(threads) : data_grad(threads);
    case product::weight_grad:
      return is_direct ? weight_grad_directly(threads) : weight_grad(threads);
    }
  }
};

status submit(stream &s, const char *name, call::product product, const view &y, const view &x, const view &w,
              const windows &of, bool accumulate) {
  if (y.type != element_type::f32 || x.type != element_type::f32 || w.type != element_type::f32)
    return internal_error(std::string(name) + " takes f32 views only");
  call c = {};
  WINDLASS_TRY(detail::plan_convolution(name, y, x, w, of, c.plan));
  c.x = x.as<float>();
  c.w = w.as<float>();
  c.y = y.as<float>();
  c.accumulate = accumulate;
  c.scratch = reinterpret_cast<float *>(s.scratch());
  const detail::sequence outputs(y, 2, y.rank), elements(w, 1, w.rank);
  c.y_line = outputs.run();
  c.y_step = outputs.stride();
  c.w_line = elements.run();
  c.w_step = elements.stride();
  WINDLASS_TRY(cpu::prepare_gemm());
  if (const std::int64_t bytes = convolution_scratch_bytes(y, w, s.threads()); s.scratch_bytes() < bytes)
    return internal_error(std::string(name) + " needs " + std::to_string(bytes) + " bytes of scratch, the stream has " +
                          std::to_string(s.scratch_bytes()));
  const window_plan &p = c.plan;
  return s.submit(
      {name, p.flops(), bytes_of({y, x, w}), {p.batch * p.out_plane(), p.groups * p.outs, p.depth(), p.groups}},
      [c, product, threads = s.threads()]() -> status {
        c.run(product, threads);
        return {};
      });
}

} // namespace

status convolution(stream &s, const view &y, const view &x, const view &w, const windows &of, bool accumulate) {
  return submit(s, "convolution", call::product::forward, y, x, w, of, accumulate);
}

status convolution_data_grad(stream &s, const view &dx, const view &dy, const view &w, const windows &of,
                             bool accumulate) {
  return submit(s, "convolution_data_grad", call::product::data_grad, dy, dx, w, of, accumulate);
}

status convolution_weight_grad(stream &s, const view &dw, const view &dy, const view &x, const windows &of,
                               bool accumulate) {
  return submit(s, "convolution_weight_grad", call::product::weight_grad, dy, x, dw, of, accumulate);
}

} // namespace windlass::rt
