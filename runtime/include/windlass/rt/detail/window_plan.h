// The loops of a convolution or of pooling: sizes, strides, and where a window's elements lie.
#ifndef WINDLASS_RT_DETAIL_WINDOW_PLAN_H
#define WINDLASS_RT_DETAIL_WINDOW_PLAN_H

#include "windlass/rt/detail/function.h"
#include "windlass/rt/kernels.h"

#include <cstdint>

namespace windlass::rt::detail {

/// The most outputs, and the most elements of a kernel, that a convolution lays out as one matrix at once.
constexpr std::int64_t convolution_tile = 256;

/// A spatial dim: the window's element `tap` of output `out` is element out * stride + tap * dilation - pad of the
/// input.
struct window_axis {
  std::int64_t in = 1, out = 1, size = 1, stride = 1, dilation = 1, pad = 0;

  WINDLASS_FN std::int64_t position(std::int64_t output, std::int64_t tap) const {
    return output * stride + tap * dilation - pad;
  }
  WINDLASS_FN bool has(std::int64_t position) const { return position >= 0 && position < in; }
  /// Returns the first tap of a window that is at or behind the input's begin.
  WINDLASS_FN std::int64_t first_tap(std::int64_t output) const {
    const std::int64_t start = position(output, 0);
    return start >= 0 ? 0 : (-start + dilation - 1) / dilation;
  }
  /// Returns the number of taps before the input's end; those from first_tap on are inside.
  WINDLASS_FN std::int64_t last_tap(std::int64_t output) const {
    const std::int64_t start = position(output, 0);
    const std::int64_t count = start >= in ? 0 : (in - 1 - start) / dilation + 1;
    return count < size ? count : size;
  }
  /// Returns the output whose window has the input's element as its element `tap`; -1 where there is none.
  WINDLASS_FN std::int64_t output_of(std::int64_t element, std::int64_t tap) const {
    const std::int64_t from = element + pad - tap * dilation;
    return from < 0 || from % stride != 0 || from / stride >= out ? -1 : from / stride;
  }
};

/// Where the elements of an operand are, in elements: strides of the batch (or of the weight's outputs), of the
/// channels, and of three spatial dims.
struct window_strides {
  std::int64_t outer = 0, channel = 0, spatial[3] = {};

  WINDLASS_FN std::int64_t offset(std::int64_t i0, std::int64_t i1, std::int64_t i2) const {
    return i0 * spatial[0] + i1 * spatial[1] + i2 * spatial[2];
  }
};

/// A convolution, or pooling as one with a group for each channel. With fewer than three spatial dims the first have
/// one element.
struct window_plan {
  std::int64_t batch = 0, groups = 0, ins = 0, outs = 0; ///< channels are those of a group
  window_axis axes[3];
  window_strides x, w, y;

  WINDLASS_FN std::int64_t taps() const { return axes[0].size * axes[1].size * axes[2].size; }
  WINDLASS_FN std::int64_t in_plane() const { return axes[0].in * axes[1].in * axes[2].in; }
  WINDLASS_FN std::int64_t out_plane() const { return axes[0].out * axes[1].out * axes[2].out; }
  /// Returns the elements of a kernel: those that one element of the result sums over.
  WINDLASS_FN std::int64_t depth() const { return ins * taps(); }
  /// Returns the number of elements of an output's window that are inside the input.
  WINDLASS_FN std::int64_t taps_inside(std::int64_t o0, std::int64_t o1, std::int64_t o2) const {
    return (axes[0].last_tap(o0) - axes[0].first_tap(o0)) * (axes[1].last_tap(o1) - axes[1].first_tap(o1)) *
           (axes[2].last_tap(o2) - axes[2].first_tap(o2));
  }
  std::int64_t flops() const { return 2 * batch * groups * outs * out_plane() * depth(); }

  /// Returns the offset of the input's element `i` of a plane.
  WINDLASS_FN std::int64_t x_offset(std::int64_t i) const {
    return x.offset(i / (axes[1].in * axes[2].in), i / axes[2].in % axes[1].in, i % axes[2].in);
  }
  /// Returns the offset of the result's element `i` of a plane.
  WINDLASS_FN std::int64_t y_offset(std::int64_t i) const {
    return y.offset(i / (axes[1].out * axes[2].out), i / axes[2].out % axes[1].out, i % axes[2].out);
  }
  /// Returns the offset of element `i` of a kernel, channels before taps.
  WINDLASS_FN std::int64_t w_offset(std::int64_t i) const {
    const std::int64_t tap = i % taps();
    return i / taps() * w.channel +
           w.offset(tap / (axes[1].size * axes[2].size), tap / axes[2].size % axes[1].size, tap % axes[2].size);
  }
};

/// Plans a convolution of `x` [batch, groups * ins, spatial..] by `w` [groups * outs, ins, window..] to `y`. Fails
/// unless ranks, sizes and windows fit each other.
status plan_convolution(const char *kernel, const view &y, const view &x, const view &w, const windows &of,
                        window_plan &plan);
/// Plans pooling of `x` to `y`.
status plan_pooling(const char *kernel, const view &y, const view &x, const windows &of, window_plan &plan);

/// Calls inside(offset of x, column, count) for the runs of outputs [first, last) of a plane whose element `tap` of the
/// window is inside the input, and outside(column, count) for the others; columns count from `first`. Elements of a run
/// are `stride` of the last axis apart in x.
template <class Inside, class Outside>
void for_window_runs(const window_plan &p, std::int64_t tap, std::int64_t first, std::int64_t last, Inside inside,
                     Outside outside) {
  const window_axis &a0 = p.axes[0], &a1 = p.axes[1], &a2 = p.axes[2];
  const std::int64_t tap0 = tap / (a1.size * a2.size), tap1 = tap / a2.size % a1.size, tap2 = tap % a2.size;
  const auto within = [](std::int64_t i, std::int64_t low, std::int64_t high) {
    return i < low ? low : i > high ? high : i;
  };
  // The outputs of the last axis whose element is inside are [low, high).
  const std::int64_t shift = a2.position(0, tap2);
  const std::int64_t low = shift >= 0 ? 0 : (-shift + a2.stride - 1) / a2.stride,
                     high = shift >= a2.in ? 0 : (a2.in - 1 - shift) / a2.stride + 1;
  for (std::int64_t at = first; at < last;) {
    const std::int64_t line = at / a2.out, begin = at % a2.out,
                       end = begin + last - at < a2.out ? begin + last - at : a2.out;
    const std::int64_t i1 = a1.position(line % a1.out, tap1), i0 = a0.position(line / a1.out, tap0);
    const bool is_inside = a0.has(i0) && a1.has(i1);
    const std::int64_t from = is_inside ? within(low, begin, end) : end, to = is_inside ? within(high, from, end) : end,
                       column = at - first;
    if (from > begin)
      outside(column, from - begin);
    if (to > from)
      inside(p.x.offset(i0, i1, from * a2.stride + shift), column + from - begin, to - from);
    if (end > to)
      outside(column + to - begin, end - to);
    at += end - begin;
  }
}

} // namespace windlass::rt::detail

#endif
