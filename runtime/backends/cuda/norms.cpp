// Normalisation of rows: layer norm, and RMS norm, which is the same without the mean. A block for each row.
#include "kernel.h"

namespace windlass::rt {

namespace cuda {
namespace {

/// A vector over the columns that may be absent, with its stride.
struct columns {
  operand of;
  std::int64_t stride;
  columns(const view &v) : of(v), stride(last_stride(v)) {} // NOLINT: as operand
  WINDLASS_FN float get(std::int64_t i, float otherwise) const {
    return of.is_absent() ? otherwise : of.get(i * stride);
  }
};

/// Rows of a view with the stride of its last dim.
struct rows {
  operand of;
  sequence at;
  std::int64_t stride;
  rows(const view &v, int lead) : of(v), at(v, 0, lead), stride(v.rank > lead ? last_stride(v) : 1) {}
};

template <bool centers>
__global__ void normalize(rows y, rows mean, rows rstd, rows x, columns scale, columns bias, std::int64_t n,
                          float epsilon) {
  for (std::int64_t row = blockIdx.x; row < x.at.count(); row += gridDim.x) {
    const std::int64_t base = x.at.offset(row), out = y.at.offset(row);
    float m = 0;
    if (centers) {
      for (std::int64_t i = threadIdx.x; i < n; i += blockDim.x)
        m += x.of.get(base + i * x.stride);
      m = reduce_block<add_values>(m) / static_cast<float>(n);
    }
    float squares = 0;
    for (std::int64_t i = threadIdx.x; i < n; i += blockDim.x) {
      const float d = x.of.get(base + i * x.stride) - m;
      squares += d * d;
    }
    squares = reduce_block<add_values>(squares);
    const float r = 1.0f / std::sqrt(squares / static_cast<float>(n) + epsilon);
    if (threadIdx.x == 0) {
      if (centers)
        mean.of.set(mean.at.offset(row), m);
      rstd.of.set(rstd.at.offset(row), r);
    }
    for (std::int64_t i = threadIdx.x; i < n; i += blockDim.x)
      y.of.set(out + i * y.stride, (x.of.get(base + i * x.stride) - m) * r * scale.get(i, 1.0f) + bias.get(i, 0.0f));
  }
}

/// dx. Without `centers` the mean is 0 and does not depend on x.
template <bool centers>
__global__ void normalize_grad(rows dx, rows dy, rows x, columns scale, rows mean, rows rstd, std::int64_t n) {
  for (std::int64_t row = blockIdx.x; row < x.at.count(); row += gridDim.x) {
    const std::int64_t base = x.at.offset(row), from = dy.at.offset(row), out = dx.at.offset(row);
    const float m = centers ? mean.of.get(mean.at.offset(row)) : 0.0f, r = rstd.of.get(rstd.at.offset(row));
    float sum = 0, dot = 0;
    for (std::int64_t i = threadIdx.x; i < n; i += blockDim.x) {
      const float g = dy.of.get(from + i * dy.stride) * scale.get(i, 1.0f);
      sum += g;
      dot += g * ((x.of.get(base + i * x.stride) - m) * r);
    }
    sum = centers ? reduce_block<add_values>(sum) / static_cast<float>(n) : 0.0f;
    dot = reduce_block<add_values>(dot) / static_cast<float>(n);
    for (std::int64_t i = threadIdx.x; i < n; i += blockDim.x) {
      const float g = dy.of.get(from + i * dy.stride) * scale.get(i, 1.0f);
      dx.of.set(out + i * dx.stride, r * (g - sum - (x.of.get(base + i * x.stride) - m) * r * dot));
    }
  }
}

/// dscale and dbias of parts of the rows: partial[part, 0 or 1, column].
template <bool centers>
__global__ void parameter_grad(double *partial, rows dy, rows x, rows mean, rows rstd, std::int64_t n,
                               std::int64_t parts) {
  for (std::int64_t i = grid_thread(); i < n * parts; i += grid_threads()) {
    const std::int64_t part = i / n, column = i % n, all = x.at.count();
    double scale_sum = 0, bias_sum = 0;
    for (std::int64_t row = all * part / parts; row < all * (part + 1) / parts; ++row) {
      const float d = dy.of.get(dy.at.offset(row) + column * dy.stride);
      const float m = centers ? mean.of.get(mean.at.offset(row)) : 0.0f;
      const float normal = (x.of.get(x.at.offset(row) + column * x.stride) - m) * rstd.of.get(rstd.at.offset(row));
      scale_sum += static_cast<double>(d * normal);
      bias_sum += static_cast<double>(d);
    }
    partial[part * 2 * n + column] = scale_sum;
    partial[part * 2 * n + n + column] = bias_sum;
  }
}

__global__ void join_parameter_grad(columns dscale, columns dbias, const double *partial, std::int64_t n,
                                    std::int64_t parts) {
  for (std::int64_t i = grid_thread(); i < n; i += grid_threads()) {
    double scale_sum = 0, bias_sum = 0;
    for (std::int64_t part = 0; part < parts; ++part) {
      scale_sum += partial[part * 2 * n + i];
      bias_sum += partial[part * 2 * n + n + i];
    }
    if (!dscale.of.is_absent())
      dscale.of.set(i * dscale.stride, static_cast<float>(scale_sum));
    if (!dbias.of.is_absent())
      dbias.of.set(i * dbias.stride, static_cast<float>(bias_sum));
  }
}

status check_norm(std::initializer_list<view> full, std::initializer_list<view> of_rows,
                  std::initializer_list<view> of_columns) {
  const view &x = *full.begin();
  bool fits = x.rank >= 1 && are_real(full) && are_real(of_rows) && are_real(of_columns);
  for (const view &v : full)
    fits = fits && has_same_sizes(v, x);
  for (const view &v : of_rows)
    fits = fits && v.rank == x.rank - 1 && has_same_dims(v, x, v.rank);
  for (const view &v : of_columns)
    fits = fits && (v.is_absent() || (v.rank == 1 && v.sizes[0] == x.sizes[x.rank - 1]));
  return check_views(fits, "a norm");
}

template <bool centers>
status run_norm(stream &s, const view &y, const view &mean, const view &rstd, const view &x, const view &scale,
                const view &bias, double epsilon) {
  const int lead = x.rank - 1;
  const rows of_x(x, lead);
  return launch(s, blocks_for_rows(of_x.at.count()), block_threads, normalize<centers>, rows(y, lead),
                rows(centers ? mean : rstd, lead), rows(rstd, lead), of_x, columns(scale), columns(bias), x.sizes[lead],
                static_cast<float>(epsilon));
}

template <bool centers>
status run_norm_grad(stream &s, const view &dx, const view &dscale, const view &dbias, const view &dy, const view &x,
                     const view &scale, const view &mean, const view &rstd) {
  const int lead = x.rank - 1;
  const std::int64_t n = x.sizes[lead];
  const rows of_x(x, lead), of_dy(dy, lead), of_mean(centers ? mean : rstd, lead), of_rstd(rstd, lead);
  WINDLASS_TRY(launch(s, blocks_for_rows(of_x.at.count()), block_threads, normalize_grad<centers>, rows(dx, lead),
                      of_dy, of_x, columns(scale), of_mean, of_rstd, n));
  const std::int64_t room = s.scratch_bytes() / std::max<std::int64_t>(n * 16, 1);
  if (room < 1)
    return internal_error("the gradient of a norm needs " + std::to_string(n * 16) +
                          " bytes of scratch, the stream has " + std::to_string(s.scratch_bytes()));
  const std::int64_t parts = std::clamp<std::int64_t>(of_x.at.count() / 16, 1, std::min<std::int64_t>(room, 256));
  double *partial = reinterpret_cast<double *>(s.scratch());
  WINDLASS_TRY(launch(s, blocks_for(n * parts), block_threads, parameter_grad<centers>, partial, of_dy, of_x, of_mean,
                      of_rstd, n, parts));
  return launch(s, blocks_for(n), block_threads, join_parameter_grad, columns(dscale), columns(dbias), partial, n,
                parts);
}

} // namespace
} // namespace cuda

status layer_norm(stream &s, const view &y, const view &mean, const view &rstd, const view &x, const view &scale,
                  const view &bias, double epsilon) {
  WINDLASS_TRY(cuda::check_norm({x, y}, {mean, rstd}, {scale, bias}));
  return s.submit({"layer_norm", 0, bytes_of({y, mean, rstd, x}), {x.elements()}},
                  [=, &s]() -> status { return cuda::run_norm<true>(s, y, mean, rstd, x, scale, bias, epsilon); });
}

status layer_norm_grad(stream &s, const view &dx, const view &dscale, const view &dbias, const view &dy, const view &x,
                       const view &scale, const view &mean, const view &rstd) {
  WINDLASS_TRY(cuda::check_norm({x, dx, dy}, {mean, rstd}, {scale, dscale, dbias}));
  return s.submit({"layer_norm_grad", 0, bytes_of({dx, dy, x, mean, rstd}), {x.elements()}}, [=, &s]() -> status {
    return cuda::run_norm_grad<true>(s, dx, dscale, dbias, dy, x, scale, mean, rstd);
  });
}

status rms_norm(stream &s, const view &y, const view &rstd, const view &x, const view &scale, double epsilon) {
  WINDLASS_TRY(cuda::check_norm({x, y}, {rstd}, {scale}));
  return s.submit({"rms_norm", 0, bytes_of({y, rstd, x}), {x.elements()}},
                  [=, &s]() -> status { return cuda::run_norm<false>(s, y, view(), rstd, x, scale, view(), epsilon); });
}

status rms_norm_grad(stream &s, const view &dx, const view &dscale, const view &dy, const view &x, const view &scale,
                     const view &rstd) {
  WINDLASS_TRY(cuda::check_norm({x, dx, dy}, {rstd}, {scale, dscale}));
  return s.submit({"rms_norm_grad", 0, bytes_of({dx, dy, x, rstd}), {x.elements()}}, [=, &s]() -> status {
    return cuda::run_norm_grad<false>(s, dx, dscale, view(), dy, x, scale, view(), rstd);
  });
}

} // namespace windlass::rt
