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

/// dx, to which `added` is added, and dscale and dbias as sums over all rows. Without `centers` the mean is 0 and does
/// not depend on x.
template <bool centers>
void normalize_grad(const view &dx, const view &dscale, const view &dbias, const view &dy, const view &x,
                    const view &scale, const view &mean, const view &rstd, const view &added, bool accumulate,
                    double *scratch, std::int32_t threads) {
  const int lead = x.rank - 1;
  const std::int64_t n = x.sizes[lead];
  const sequence of_x(x, 0, lead), of_dx(dx, 0, lead), of_dy(dy, 0, lead), of_mean(centers ? mean : rstd, 0, lead),
      of_rstd(rstd, 0, lead), of_added(added.is_absent() ? dx : added, 0, lead);
  const std::int64_t added_stride = added.is_absent() ? 1 : cpu::last_stride(added);
  const vector scales(scale), dscales(dscale), dbiases(dbias);
  const std::int64_t rows = of_x.count();
  const std::int32_t parts = detail::part_count(rows, cpu::grain / (n * 4 + 1) + 1, threads);
  constexpr float no_factor = 1;
  const float *const factors = scales.data == nullptr ? &no_factor : scales.data;
  const auto run = [&](auto sx, auto sdx, auto sdy, auto sscale) {
    const auto group = [&](auto size, std::int64_t first, double *scale_sums, double *bias_sums) {
      constexpr std::int64_t count = decltype(size)::value;
      const float *in[count], *d[count];
      float *out[count];
      float m[count], r[count], means[count], dots[count];
      // A copy: through the closure the pointer would be loaded for every lane, and its values gathered.
      const float *const weights = factors;
      for (std::int64_t g = 0; g < count; ++g) {
        in[g] = x.as<const float>() + of_x.offset(first + g);
        d[g] = dy.as<const float>() + of_dy.offset(first + g);
        out[g] = dx.as<float>() + of_dx.offset(first + g);
        m[g] = centers ? mean.as<const float>()[of_mean.offset(first + g)] : 0.0f;
        r[g] = rstd.as<const float>()[of_rstd.offset(first + g)];
        const float *const in_row = in[g], *const d_row = d[g];
        const float row_mean = m[g], row_rstd = r[g];
        float sum = 0, dot = 0;
#pragma omp simd reduction(+ : sum, dot)
        for (std::int64_t i = 0; i < n; ++i) {
          const float slope = d_row[i * sdy] * weights[i * sscale];
          sum += slope;
          dot += slope * ((in_row[i * sx] - row_mean) * row_rstd);
        }
        means[g] = centers ? sum / static_cast<float>(n) : 0.0f;
        dots[g] = dot / static_cast<float>(n);
      }
      // By strips, whose sums stay in L1 for all rows of the group.
      constexpr std::int64_t strip = 256;
      for (std::int64_t from = 0; from < n; from += strip) {
        const std::int64_t columns = std::min(strip, n - from);
        float scale_strip[strip] = {}, bias_strip[strip] = {}, more[strip] = {};
        for (std::int64_t g = 0; g < count; ++g) {
          if (!added.is_absent()) {
            const float *const added_row = added.as<const float>() + of_added.offset(first + g) + from * added_stride;
            for (std::int64_t i = 0; i < columns; ++i)
              more[i] = added_row[i * added_stride];
          }
          const float *const in_row = in[g] + from * sx, *const d_row = d[g] + from * sdy;
          const float row_mean = m[g], row_rstd = r[g], slope_mean = means[g], dot = dots[g];
          float *const out_row = out[g] + from * sdx;
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
    };
    detail::for_parts(rows, parts, [&](std::int64_t begin, std::int64_t end, std::int32_t part) {
      double *scale_sums = scratch + part * 2 * n, *bias_sums = scale_sums + n;
      for (std::int64_t i = 0; i < 2 * n; ++i)
        scale_sums[i] = 0;
      // Rows in groups, over which the sums of columns are f32, so that those in double are touched less often.
      constexpr std::int64_t together = 8;
      std::int64_t row = begin;
      for (; row + together <= end; row += together)
        group(std::integral_constant<std::int64_t, together>(), row, scale_sums, bias_sums);
      for (; row < end; ++row)
        group(std::integral_constant<std::int64_t, 1>(), row, scale_sums, bias_sums);
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
  for (std::int64_t i = 0; i < n; ++i) {
    double scale_sum = 0, bias_sum = 0;
    for (std::int32_t part = 0; part < parts; ++part) {
      scale_sum += scratch[part * 2 * n + i];
      bias_sum += scratch[part * 2 * n + n + i];
    }
    const auto write = [&](const vector &to, double sum) {
      if (to.data != nullptr)
        to.data[i * to.stride] = (accumulate ? to.data[i * to.stride] : 0.0f) + static_cast<float>(sum);
    };
    write(dscales, scale_sum);
    write(dbiases, bias_sum);
  }
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
