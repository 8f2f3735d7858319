// Reductions over dimensions, and the sum of squares.
#include "rows.h"

#include "windlass/rt/detail/host_squares.h"
#include "windlass/rt/detail/reduce_all.h"

#include <limits>

namespace windlass::rt {

namespace {

using cpu::sequence;
using detail::put;
using detail::reduce_all;
using detail::reduce_range;

// Sums are kept in double: a long sum in f32 would lose digits. A few neighbours may be merged in f32 before.
struct sum_of {
  using value = double;
  static constexpr double start = 0;
  static float merge(float a, float b) { return a + b; }
  static double add(double r, float x) { return r + static_cast<double>(x); }
  static double join(double a, double b) { return a + b; }
};
struct max_of {
  using value = float;
  static constexpr float start = -std::numeric_limits<float>::infinity();
  static float add(float r, float x) { return ((r > x) | (r != r)) ? r : x; }
  static float merge(float a, float b) { return add(a, b); }
  static float join(float a, float b) { return add(a, b); }
};
struct min_of {
  using value = float;
  static constexpr float start = std::numeric_limits<float>::infinity();
  static float add(float r, float x) { return ((r < x) | (r != r)) ? r : x; }
  static float merge(float a, float b) { return add(a, b); }
  static float join(float a, float b) { return add(a, b); }
};

template <class Op> void reduce_as(const view &out, const view &in, int reduced_rank, bool accumulate, int threads) {
  const int kept_rank = in.rank - reduced_rank;
  const sequence kept_in(in, 0, kept_rank), kept_out(out, 0, out.rank), reduced(in, kept_rank, in.rank);
  const float *x = in.as<const float>();
  float *y = out.as<float>();
  if (kept_in.count() == 1)
    return reduce_all<Op>(*y, x, reduced, accumulate, threads);
  const bool is_by_columns = reduced.stride() != 1 && kept_in.stride() == 1 && kept_in.run() >= 8;
  if (!is_by_columns) {
    cpu::for_rows(threads, kept_in.count(), reduced.count(), [&](std::int64_t row) {
      put(y[kept_out.offset(row)],
          static_cast<double>(reduce_range<Op>(x + kept_in.offset(row), reduced, 0, reduced.count())), accumulate);
    });
    return;
  }
  // Neighbours in memory are different results: go down the rows with a strip of results at a time.
  constexpr std::int64_t strip = 256;
  const std::int64_t run = kept_in.run(), strips_per_run = (run + strip - 1) / strip;
  const std::int64_t strips = kept_in.count() / run * strips_per_run;
  // Narrow strips when there are fewer wide ones than threads.
  const std::int64_t width = strips >= threads ? strip : std::clamp<std::int64_t>(run / threads / 16 * 16, 16, strip);
  const std::int64_t per_run = (run + width - 1) / width;
  cpu::for_rows(threads, kept_in.count() / run * per_run, width * reduced.count(), [&](std::int64_t number) {
    const std::int64_t first = number / per_run * run + number % per_run * width;
    const std::int64_t n = std::min(width, run - number % per_run * width);
    typename Op::value results[strip];
    for (std::int64_t i = 0; i < n; ++i)
      results[i] = Op::start;
    const float *base = x + kept_in.offset(first);
    std::int64_t r = 0;
    // Several rows at once, so that the results are loaded and stored less often.
    constexpr std::int64_t together = 8;
    for (; r + together <= reduced.count(); r += together) {
      const float *lines[together];
      for (std::int64_t t = 0; t < together; ++t)
        lines[t] = base + reduced.offset(r + t);
      WINDLASS_SIMD
      for (std::int64_t i = 0; i < n; ++i) {
        float merged = lines[0][i];
        for (std::int64_t t = 1; t < together; ++t)
          merged = Op::merge(merged, lines[t][i]);
        results[i] = Op::add(results[i], merged);
      }
    }
    for (; r < reduced.count(); ++r) {
      const float *row = base + reduced.offset(r);
      WINDLASS_SIMD
      for (std::int64_t i = 0; i < n; ++i)
        results[i] = Op::add(results[i], row[i]);
    }
    for (std::int64_t i = 0; i < n; ++i)
      put(y[kept_out.offset(first + i)], static_cast<double>(results[i]), accumulate);
  });
}

status check_f32(const view &v, const char *kernel) {
  if (v.type == element_type::f32)
    return {};
  return internal_error(std::string(kernel) + " takes f32 views only");
}

} // namespace

status reduce(stream &s, const view &out, const view &in, std::int32_t reduced_rank, reduction kind, bool accumulate) {
  WINDLASS_TRY(check_f32(out, "reduce"));
  WINDLASS_TRY(check_f32(in, "reduce"));
  bool fits = reduced_rank >= 0 && out.rank + reduced_rank == in.rank && (!accumulate || kind == reduction::sum);
  for (int d = 0; d < out.rank && fits; ++d)
    fits = out.sizes[d] == in.sizes[d];
  if (!fits)
    return internal_error("reduce got views that do not fit, or max or min with accumulate");
  return s.submit({"reduce", 0, bytes_of({out, in}), {in.elements(), out.elements()}},
                  [=, threads = s.threads()]() -> status {
                    switch (kind) {
                    case reduction::sum:
                      reduce_as<sum_of>(out, in, reduced_rank, accumulate, threads);
                      break;
                    case reduction::max:
                      reduce_as<max_of>(out, in, reduced_rank, false, threads);
                      break;
                    case reduction::min:
                      reduce_as<min_of>(out, in, reduced_rank, false, threads);
                      break;
                    }
                    return {};
                  });
}

status square_sum(stream &s, const view &out, const view &in, bool accumulate) {
  return detail::square_sum_on_host(s, out, in, accumulate);
}

status square_sum_list(stream &s, const view &out, const squared_gradients &gradients, bool accumulate) {
  return detail::square_sum_list_on_host(s, out, gradients, accumulate);
}

} // namespace windlass::rt
