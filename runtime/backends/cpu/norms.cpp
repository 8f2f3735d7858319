// Normalisation of rows: layer norm, and RMS norm, which is the same without the mean.
#include "rows.h"

#include "windlass/rt/kernels.h"

#include <cmath>
#include <string>

namespace windlass::rt {

namespace {

using cpu::sequence;

status check(std::initializer_list<view> full, std::initializer_list<view> rows, std::initializer_list<view> columns) {
  const view &x = *full.begin();
  bool fits = x.rank >= 1;
  const auto same = [&](const view &v, int first, int rank) {
    bool ok = v.type == element_type::f32 && v.rank == rank;
    for (int d = 0; d < rank && ok; ++d)
      ok = v.sizes[d] == x.sizes[first + d];
    return ok;
  };
  for (const view &v : full)
    fits = fits && same(v, 0, x.rank);
  for (const view &v : rows)
    fits = fits && same(v, 0, x.rank - 1);
  for (const view &v : columns)
    fits = fits && (v.is_absent() || same(v, x.rank - 1, 1));
  if (fits)
    return {};
  return internal_error("a norm got views whose types, ranks or sizes do not fit");
}

/// A vector that may be absent, with its stride.
struct vector {
  float *data;
  std::int64_t stride;
  explicit vector(const view &v) : data(v.as<float>()), stride(cpu::last_stride(v)) {}
};

/// y = (x - mean) rstd scale + bias, and the rows' mean and rstd. Without `centers` the mean is 0 and not written.
/// begin(row) comes before the row is read.
template <bool centers, class Begin>
void normalize(const view &y, const view &mean, const view &rstd, const view &x, const view &scale, const view &bias,
               double epsilon, std::int32_t threads, const Begin &begin) {
  const int lead = x.rank - 1;
  const std::int64_t n = x.sizes[lead];
  const sequence of_x(x, 0, lead), of_y(y, 0, lead), of_mean(centers ? mean : rstd, 0, lead), of_rstd(rstd, 0, lead);
  const vector scales(scale), biases(bias);
  const auto run = [&](auto sx, auto sy, auto sscale, auto sbias) {
    cpu::for_rows(threads, of_x.count(), n * 2, [&](std::int64_t row) {
      begin(row);
      const float *in = x.as<const float>() + of_x.offset(row);
      float *out = y.as<float>() + of_y.offset(row);
      float m = 0;
      if constexpr (centers) {
        float sum = 0;
#pragma omp simd reduction(+ : sum)
        for (std::int64_t i = 0; i < n; ++i)
          sum += in[i * sx];
        m = sum / static_cast<float>(n);
        mean.as<float>()[of_mean.offset(row)] = m;
      }
      float squares = 0;
#pragma omp simd reduction(+ : squares)
      for (std::int64_t i = 0; i < n; ++i)
        squares += (in[i * sx] - m) * (in[i * sx] - m);
      const float r = 1.0f / std::sqrt(squares / static_cast<float>(n) + static_cast<float>(epsilon));
      rstd.as<float>()[of_rstd.offset(row)] = r;
      const float *factors = scales.data, *shifts = biases.data;
      if (factors != nullptr && shifts != nullptr) {
        WINDLASS_SIMD
        for (std::int64_t i = 0; i < n; ++i)
          out[i * sy] = (in[i * sx] - m) * r * factors[i * sscale] + shifts[i * sbias];
      } else if (factors != nullptr) {
        WINDLASS_SIMD
        for (std::int64_t i = 0; i < n; ++i)
          out[i * sy] = (in[i * sx] - m) * r * factors[i * sscale];
      } else {
        WINDLASS_SIMD
        for (std::int64_t i = 0; i < n; ++i)
          out[i * sy] = (in[i * sx] - m) * r + (shifts == nullptr ? 0.0f : shifts[i * sbias]);
      }
    });
  };
  constexpr cpu::unit_stride one;
  if (cpu::last_stride(x) == 1 && cpu::last_stride(y) == 1 && scales.stride == 1 && biases.stride == 1)
    run(one, one, one, one);
  else
    run(cpu::last_stride(x), cpu::last_stride(y), scales.stride, biases.stride);
}

constexpr auto nothing = [](std::int64_t) {};

/// Normalises `sum`, which gets a + b + c row by row, just before the row is read.
template <bool centers>
void add_and_normalize(const view &sum, const view &y, const view &mean, const view &rstd, const view &a, const view &b,
                       const view &c, const view &scale, const view &bias, double epsilon, std::int32_t threads) {
  const int lead = sum.rank - 1;
  const std::int64_t n = sum.sizes[lead];
  const sequence of_sum(sum, 0, lead), of_a(a, 0, lead), of_b(b, 0, lead), of_c(c.is_absent() ? b : c, 0, lead);
  const auto run = [&](auto to, auto sa, auto sb, auto sc) {
    normalize<centers>(y, mean, rstd, sum, scale, bias, epsilon, threads, [&](std::int64_t row) {
      float *const out = sum.as<float>() + of_sum.offset(row);
      const float *const x1 = a.as<const float>() + of_a.offset(row), *const x2 =
                                                                          b.as<const float>() + of_b.offset(row);
      if (c.is_absent()) {
        WINDLASS_SIMD
        for (std::int64_t i = 0; i < n; ++i)
          out[i * to] = x1[i * sa] + x2[i * sb];
      } else {
        const float *const x3 = c.as<const float>() + of_c.offset(row);
        WINDLASS_SIMD
        for (std::int64_t i = 0; i < n; ++i)
          out[i * to] = x1[i * sa] + x2[i * sb] + x3[i * sc];
      }
    });
  };
  const std::int64_t third = c.is_absent() ? 1 : cpu::last_stride(c);
  constexpr cpu::unit_stride one;
  if (cpu::last_stride(sum) == 1 && cpu::last_stride(a) == 1 && cpu::last_stride(b) == 1 && third == 1)
    run(one, one, one, one);
  else
    run(cpu::last_stride(sum), cpu::last_stride(a), cpu::last_stride(b), third);
}

/// `count` rows of a gradient's operands, and what the first pass over them finds.
template <std::int64_t count> struct row_group {
  const float *x[count], *dy[count], *added[count]; ///< `added` is null where nothing is added to dx
  float *dx[count];
  float mean[count], rstd[count];
  float slope_mean[count], slope_dot[count]; ///< of dy scale: its mean, and that of its product with the normal row
};

/// The operands of a gradient by rows. Without `centers` the mean is 0.
template <bool centers> class grad_rows {
public:
  grad_rows(const view &dx, const view &dy, const view &x, const view &mean, const view &rstd, const view &added)
      : dx_(dx), dy_(dy), x_(x), mean_(mean), rstd_(rstd), added_(added), of_dx_(dx, 0, x.rank - 1),
        of_dy_(dy, 0, x.rank - 1), of_x_(x, 0, x.rank - 1), of_mean_(centers ? mean : rstd, 0, x.rank - 1),
        of_rstd_(rstd, 0, x.rank - 1), of_added_(added.is_absent() ? dx : added, 0, x.rank - 1) {}

  std::int64_t count() const { return of_x_.count(); }

  template <std::int64_t count> row_group<count> group(std::int64_t first) const {
    row_group<count> rows;
    for (std::int64_t g = 0; g < count; ++g) {
      rows.x[g] = x_.as<const float>() + of_x_.offset(first + g);
      rows.dy[g] = dy_.as<const float>() + of_dy_.offset(first + g);
      rows.added[g] = added_.is_absent() ? nullptr : added_.as<const float>() + of_added_.offset(first + g);
      rows.dx[g] = dx_.as<float>() + of_dx_.offset(first + g);
      rows.mean[g] = centers ? mean_.as<const float>()[of_mean_.offset(first + g)] : 0.0f;
      rows.rstd[g] = rstd_.as<const float>()[of_rstd_.offset(first + g)];
    }
    return rows;
  }

private:
  view dx_, dy_, x_, mean_, rstd_, added_;
  sequence of_dx_, of_dy_, of_x_, of_mean_, of_rstd_, of_added_;
};

/// The first pass over a group: the means of its slopes and of their products with the normal rows.
template <bool centers, std::int64_t count, class X, class Dy, class Scale>
void average_slopes(row_group<count> &rows, const float *weights, std::int64_t n, X sx, Dy sdy, Scale sscale) {
  for (std::int64_t g = 0; g < count; ++g) {
    const float *const in_row = rows.x[g], *const d_row = rows.dy[g];
    const float row_mean = rows.mean[g], row_rstd = rows.rstd[g];
    float sum = 0, dot = 0;
#pragma omp simd reduction(+ : sum, dot)
    for (std::int64_t i = 0; i < n; ++i) {
      const float slope = d_row[i * sdy] * weights[i * sscale];
      sum += slope;
      dot += slope * ((in_row[i * sx] - row_mean) * row_rstd);
    }
    rows.slope_mean[g] = centers ? sum / static_cast<float>(n) : 0.0f;
    rows.slope_dot[g] = dot / static_cast<float>(n);
  }
}

/// The second pass over a group: writes dx, and adds to the sums over the columns. It goes by strips, whose sums stay
/// in L1 for all rows of the group.
template <std::int64_t count, class X, class Dx, class Dy, class Scale>
void write_input_grads(const row_group<count> &rows, const float *weights, std::int64_t n, std::int64_t added_stride,
                       double *scale_sums, double *bias_sums, X sx, Dx sdx, Dy sdy, Scale sscale) {
  constexpr std::int64_t strip = 256;
  for (std::int64_t from = 0; from < n; from += strip) {
    const std::int64_t columns = std::min(strip, n - from);
    float scale_strip[strip] = {}, bias_strip[strip] = {}, more[strip] = {};
    for (std::int64_t g = 0; g < count; ++g) {
      if (rows.added[g] != nullptr) {
        const float *const added_row = rows.added[g] + from * added_stride;
        for (std::int64_t i = 0; i < columns; ++i)
          more[i] = added_row[i * added_stride];
      }
      const float *const in_row = rows.x[g] + from * sx, *const d_row = rows.dy[g] + from * sdy;
      const float row_mean = rows.mean[g], row_rstd = rows.rstd[g], slope_mean = rows.slope_mean[g],
                  dot = rows.slope_dot[g];
      float *const out_row = rows.dx[g] + from * sdx;
      WINDLASS_SIMD
      for (std::int64_t i = 0; i < columns; ++i) {
        const float normal = (in_row[i * sx] - row_mean) * row_rstd;
        const float slope = d_row[i * sdy] * weights[(from + i) * sscale];
        scale_strip[i] += d_row[i * sdy] * normal;
        bias_strip[i] += d_row[i * sdy];
        out_row[i * sdx] = row_rstd * (slope - slope_mean - normal * dot) + more[i];
      }
    }
    WINDLASS_SIMD
    for (std::int64_t i = 0; i < columns; ++i) {
      scale_sums[from + i] += static_cast<double>(scale_strip[i]);
      bias_sums[from + i] += static_cast<double>(bias_strip[i]);
    }
  }
}

/// Writes, or adds, the `n` column sums of all parts, whose own lie 2 n apart.
void add_parts(const vector &to, const double *sums, std::int64_t n, std::int32_t parts, bool accumulate) {
  for (std::int64_t i = 0; i < n && to.data != nullptr; ++i) {
    double sum = 0;
    for (std::int32_t part = 0; part < parts; ++part)
      sum += sums[part * 2 * n + i];
    to.data[i * to.stride] = (accumulate ? to.data[i * to.stride] : 0.0f) + static_cast<float>(sum);
  }
}

/// dx, to which `added` is added, and dscale and dbias as sums over all rows. Without `centers` the mean is 0 and does
/// not depend on x.
template <bool centers>
void normalize_grad(const view &dx, const view &dscale, const view &dbias, const view &dy, const view &x,
                    const view &scale, const view &mean, const view &rstd, const view &added, bool accumulate,
                    double *scratch, std::int32_t threads) {
  const std::int64_t n = x.sizes[x.rank - 1];
  const grad_rows<centers> rows(dx, dy, x, mean, rstd, added);
  const std::int64_t added_stride = added.is_absent() ? 1 : cpu::last_stride(added);
  const vector scales(scale);
  const std::int32_t parts = detail::part_count(rows.count(), cpu::grain / (n * 4 + 1) + 1, threads);
  constexpr float no_factor = 1;
  const float *const weights = scales.data == nullptr ? &no_factor : scales.data;
  const auto run = [&](auto sx, auto sdx, auto sdy, auto sscale) {
    detail::for_parts(rows.count(), parts, [&](std::int64_t begin, std::int64_t end, std::int32_t part) {
      double *scale_sums = scratch + part * 2 * n, *bias_sums = scale_sums + n;
      for (std::int64_t i = 0; i < 2 * n; ++i)
        scale_sums[i] = 0;
      const auto group = [&](auto size, std::int64_t first) {
        auto some = rows.template group<decltype(size)::value>(first);
        average_slopes<centers>(some, weights, n, sx, sdy, sscale);
        write_input_grads(some, weights, n, added_stride, scale_sums, bias_sums, sx, sdx, sdy, sscale);
      };
      // Rows in groups, over which the sums of columns are f32, so that those in double are touched less often.
      constexpr std::int64_t together = 8;
      std::int64_t row = begin;
      for (; row + together <= end; row += together)
        group(std::integral_constant<std::int64_t, together>(), row);
      for (; row < end; ++row)
        group(std::integral_constant<std::int64_t, 1>(), row);
    });
  };
  constexpr cpu::unit_stride one;
  constexpr std::integral_constant<std::int64_t, 0> none;
  const bool is_dense = cpu::last_stride(x) == 1 && cpu::last_stride(dx) == 1 && cpu::last_stride(dy) == 1;
  if (is_dense && scales.data == nullptr)
    run(one, one, one, none);
  else if (is_dense && scales.stride == 1)
    run(one, one, one, one);
  else
    run(cpu::last_stride(x), cpu::last_stride(dx), cpu::last_stride(dy), scales.data == nullptr ? 0 : scales.stride);
  add_parts(vector(dscale), scratch, n, parts, accumulate);
  add_parts(vector(dbias), scratch + n, n, parts, accumulate);
}

status check_scratch(const stream &s, const char *kernel, std::int64_t needed) {
  if (s.scratch_bytes() >= needed)
    return {};
  return internal_error(std::string(kernel) + " needs " + std::to_string(needed) +
                        " bytes of scratch, the stream has " + std::to_string(s.scratch_bytes()));
}

} // namespace

status layer_norm(stream &s, const view &y, const view &mean, const view &rstd, const view &x, const view &scale,
                  const view &bias, double epsilon) {
  WINDLASS_TRY(check({x, y}, {mean, rstd}, {scale, bias}));
  return s.submit({"layer_norm", 0, bytes_of({y, mean, rstd, x}), {x.elements()}},
                  [=, threads = s.threads()]() -> status {
                    normalize<true>(y, mean, rstd, x, scale, bias, epsilon, threads, nothing);
                    return {};
                  });
}

status add_layer_norm(stream &s, const view &sum, const view &y, const view &mean, const view &rstd, const view &a,
                      const view &b, const view &c, const view &scale, const view &bias, double epsilon) {
  WINDLASS_TRY(check({sum, y, a, b, c.is_absent() ? b : c}, {mean, rstd}, {scale, bias}));
  return s.submit({"add_layer_norm", 0, bytes_of({sum, y, mean, rstd, a, b, c}), {sum.elements()}},
                  [=, threads = s.threads()]() -> status {
                    add_and_normalize<true>(sum, y, mean, rstd, a, b, c, scale, bias, epsilon, threads);
                    return {};
                  });
}

status layer_norm_grad(stream &s, const view &dx, const view &dscale, const view &dbias, const view &dy, const view &x,
                       const view &scale, const view &mean, const view &rstd, const view &added, bool accumulate) {
  WINDLASS_TRY(check({x, dx, dy, added.is_absent() ? dx : added}, {mean, rstd}, {scale, dscale, dbias}));
  WINDLASS_TRY(check_scratch(s, "layer_norm_grad", norm_grad_scratch_bytes(x, s.threads())));
  return s.submit({"layer_norm_grad", 0, bytes_of({dx, dy, x, mean, rstd, added}), {x.elements()}},
                  [=, threads = s.threads(), scratch = reinterpret_cast<double *>(s.scratch())]() -> status {
                    normalize_grad<true>(dx, dscale, dbias, dy, x, scale, mean, rstd, added, accumulate, scratch,
                                         threads);
                    return {};
                  });
}

status rms_norm(stream &s, const view &y, const view &rstd, const view &x, const view &scale, double epsilon) {
  WINDLASS_TRY(check({x, y}, {rstd}, {scale}));
  return s.submit({"rms_norm", 0, bytes_of({y, rstd, x}), {x.elements()}}, [=, threads = s.threads()]() -> status {
    normalize<false>(y, view(), rstd, x, scale, view(), epsilon, threads, nothing);
    return {};
  });
}

status add_rms_norm(stream &s, const view &sum, const view &y, const view &rstd, const view &a, const view &b,
                    const view &c, const view &scale, double epsilon) {
  WINDLASS_TRY(check({sum, y, a, b, c.is_absent() ? b : c}, {rstd}, {scale}));
  return s.submit({"add_rms_norm", 0, bytes_of({sum, y, rstd, a, b, c}), {sum.elements()}},
                  [=, threads = s.threads()]() -> status {
                    add_and_normalize<false>(sum, y, view(), rstd, a, b, c, scale, view(), epsilon, threads);
                    return {};
                  });
}

status rms_norm_grad(stream &s, const view &dx, const view &dscale, const view &dy, const view &x, const view &scale,
                     const view &rstd, const view &added, bool accumulate) {
  WINDLASS_TRY(check({x, dx, dy, added.is_absent() ? dx : added}, {rstd}, {scale, dscale}));
  WINDLASS_TRY(check_scratch(s, "rms_norm_grad", norm_grad_scratch_bytes(x, s.threads())));
  return s.submit({"rms_norm_grad", 0, bytes_of({dx, dy, x, rstd, added}), {x.elements()}},
                  [=, threads = s.threads(), scratch = reinterpret_cast<double *>(s.scratch())]() -> status {
                    normalize_grad<false>(dx, dscale, view(), dy, x, scale, view(), rstd, added, accumulate, scratch,
                                          threads);
                    return {};
                  });
}

} // namespace windlass::rt
