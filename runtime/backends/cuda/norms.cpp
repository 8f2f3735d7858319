// Normalisation of rows: layer norm, and RMS norm, which is the same without the mean. A block for each row.
#include "rows.h"

namespace windlass::rt {

namespace cuda {
namespace {

template <bool centers, int W>
__global__ void __launch_bounds__(block_threads, 4)
    normalize(rows y, rows mean, rows rstd, rows x, columns scale, columns bias, std::int64_t n, float epsilon) {
  for (std::int64_t row = blockIdx.x; row < x.at.count(); row += gridDim.x) {
    const row_part<1, W> part({x.of}, {x.at.offset(row)}, {x.stride}, n);
    const std::int64_t out = y.at.offset(row);
    float m = 0;
    if (centers) {
      part.each([&](std::int64_t, const auto &in) {
        for (int w = 0; w < in.width; ++w)
          m += in.of[0][w];
      });
      m = reduce_block<add_values>(m) / static_cast<float>(n);
    }
    float squares = 0;
    part.each([&](std::int64_t, const auto &in) {
      for (int w = 0; w < in.width; ++w) {
        const float d = in.of[0][w] - m;
        squares += d * d;
      }
    });
    squares = reduce_block<add_values>(squares);
    const float r = 1.0f / std::sqrt(squares / static_cast<float>(n) + epsilon);
    if (threadIdx.x == 0) {
      if (centers)
        mean.of.set(mean.at.offset(row), m);
      rstd.of.set(rstd.at.offset(row), r);
    }
    part.each([&](std::int64_t i, auto in) {
      auto factor = in, shift = in;
      load(factor.of[0], scale, i, 1.0f);
      load(shift.of[0], bias, i, 0.0f);
      for (int w = 0; w < in.width; ++w)
        in.of[0][w] = (in.of[0][w] - m) * r * factor.of[0][w] + shift.of[0][w];
      store(y.of, out + i * y.stride, in.of[0]);
    });
  }
}

/// dx. Without `centers` the mean is 0 and does not depend on x.
template <bool centers, int W>
__global__ void __launch_bounds__(block_threads, 3)
    normalize_grad(rows dx, rows dy, rows x, columns scale, rows mean, rows rstd, std::int64_t n) {
  for (std::int64_t row = blockIdx.x; row < x.at.count(); row += gridDim.x) {
    const row_part<2, W> part({x.of, dy.of}, {x.at.offset(row), dy.at.offset(row)}, {x.stride, dy.stride}, n);
    const std::int64_t out = dx.at.offset(row);
    const float m = centers ? mean.of.get(mean.at.offset(row)) : 0.0f, r = rstd.of.get(rstd.at.offset(row));
    float sum = 0, dot = 0;
    part.each([&](std::int64_t i, const auto &in) {
      auto factor = in;
      load(factor.of[0], scale, i, 1.0f);
      for (int w = 0; w < in.width; ++w) {
        const float g = in.of[1][w] * factor.of[0][w];
        sum += g;
        dot += g * ((in.of[0][w] - m) * r);
      }
    });
    sum = centers ? reduce_block<add_values>(sum) / static_cast<float>(n) : 0.0f;
    dot = reduce_block<add_values>(dot) / static_cast<float>(n);
    part.each([&](std::int64_t i, auto in) {
      auto factor = in;
      load(factor.of[0], scale, i, 1.0f);
      for (int w = 0; w < in.width; ++w)
        in.of[0][w] = r * (in.of[1][w] * factor.of[0][w] - sum - (in.of[0][w] - m) * r * dot);
      store(dx.of, out + i * dx.stride, in.of[0]);
    });
  }
}

/// dscale and dbias of some of the rows, of W columns: of_part[0 or 1, column].
template <bool centers, int W>
__device__ void add_up_part(double *of_part, const rows &dy, const rows &x, const rows &mean, const rows &rstd,
                            std::int64_t n, std::int64_t column, std::int64_t begin, std::int64_t end) {
  double scale_sum[W] = {}, bias_sum[W] = {};
  for (std::int64_t row = begin; row < end; ++row) {
    float slope[W], in[W];
    load(slope, dy.of, dy.at.offset(row) + column * dy.stride);
    load(in, x.of, x.at.offset(row) + column * x.stride);
    const float m = centers ? mean.of.get(mean.at.offset(row)) : 0.0f, r = rstd.of.get(rstd.at.offset(row));
    for (int w = 0; w < W; ++w) {
      scale_sum[w] += static_cast<double>(slope[w] * ((in[w] - m) * r));
      bias_sum[w] += static_cast<double>(slope[w]);
    }
  }
  for (int w = 0; w < W; ++w) {
    of_part[column + w] = scale_sum[w];
    of_part[n + column + w] = bias_sum[w];
  }
}

/// Packs of W columns of each part go to the threads in turn, columns that fill none to one thread.
template <bool centers, int W>
__global__ void parameter_grad(double *partial, rows dy, rows x, rows mean, rows rstd, std::int64_t n,
                               std::int64_t parts) {
  const std::int64_t packs = (n + W - 1) / W, all = x.at.count();
  for (std::int64_t i = grid_thread(); i < packs * parts; i += grid_threads()) {
    const std::int64_t part = i / packs, column = i % packs * W;
    const std::int64_t begin = all * part / parts, end = all * (part + 1) / parts;
    double *const of_part = partial + part * 2 * n;
    if (column + W <= n)
      add_up_part<centers, W>(of_part, dy, x, mean, rstd, n, column, begin, end);
    else
      for (std::int64_t c = column; c < n; ++c)
        add_up_part<centers, 1>(of_part, dy, x, mean, rstd, n, c, begin, end);
  }
}

/// A block for each `warp_lanes` of the 2 n sums.
__global__ void join_parameter_grad(columns dscale, columns dbias, const double *partial, std::int64_t n,
                                    std::int64_t parts) {
  for (std::int64_t first = blockIdx.x * std::int64_t(warp_lanes); first < 2 * n;
       first += gridDim.x * std::int64_t(warp_lanes)) {
    const std::int64_t i = first + threadIdx.x % warp_lanes;
    const double sum = join_parts<add_values>(partial + i, i < 2 * n, parts, 2 * n, 0.0);
    if (threadIdx.x >= warp_lanes)
      continue;
    if (i < n && !dscale.is_absent())
      dscale.of.set(dscale.offset(i), static_cast<float>(sum));
    else if (i >= n && i < 2 * n && !dbias.is_absent())
      dbias.of.set(dbias.offset(i - n), static_cast<float>(sum));
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

template <bool centers, int W>
status run_norm(stream &s, const view &y, const view &mean, const view &rstd, const view &x, const view &scale,
                const view &bias, double epsilon) {
  const int lead = x.rank - 1;
  const std::int64_t n = x.sizes[lead];
  const rows of_x(x, lead);
  return launch(s, blocks_for_rows(of_x.at.count()), threads_for_row(n, W), normalize<centers, W>, rows(y, lead),
                rows(centers ? mean : rstd, lead), rows(rstd, lead), of_x, columns(scale), columns(bias), n,
                static_cast<float>(epsilon));
}

template <bool centers, int W>
status run_norm_grad(stream &s, const view &dx, const view &dscale, const view &dbias, const view &dy, const view &x,
                     const view &scale, const view &mean, const view &rstd) {
  const int lead = x.rank - 1;
  const std::int64_t n = x.sizes[lead], packs = std::max<std::int64_t>((n + W - 1) / W, 1);
  const rows of_x(x, lead), of_dy(dy, lead), of_mean(centers ? mean : rstd, lead), of_rstd(rstd, lead);
  WINDLASS_TRY(launch(s, blocks_for_rows(of_x.at.count()), threads_for_row(n, W), normalize_grad<centers, W>,
                      rows(dx, lead), of_dy, of_x, columns(scale), of_mean, of_rstd, n));
  const std::int64_t room = s.scratch_bytes() / std::max<std::int64_t>(n * 16, 1);
  if (room < 1)
    return internal_error("the gradient of a norm needs " + std::to_string(n * 16) +
                          " bytes of scratch, the stream has " + std::to_string(s.scratch_bytes()));
  constexpr std::int64_t enough_threads = 1 << 16; // to fill a large device
  const std::int64_t parts = std::clamp<std::int64_t>(std::min(of_x.at.count() / 16, enough_threads / packs), 1, room);
  double *partial = reinterpret_cast<double *>(s.scratch());
  WINDLASS_TRY(launch(s, blocks_for(packs * parts), block_threads, parameter_grad<centers, W>, partial, of_dy, of_x,
                      of_mean, of_rstd, n, parts));
  return launch(s, blocks_for(2 * n, warp_lanes), block_threads, join_parameter_grad, columns(dscale), columns(dbias),
                partial, n, parts);
}

} // namespace
} // namespace cuda

status layer_norm(stream &s, const view &y, const view &mean, const view &rstd, const view &x, const view &scale,
                  const view &bias, double epsilon) {
  WINDLASS_TRY(cuda::check_norm({x, y}, {mean, rstd}, {scale, bias}));
  return s.submit({"layer_norm", 0, bytes_of({y, mean, rstd, x}), {x.elements()}}, [=, &s]() -> status {
    const auto run =
        cuda::have_packs({x, y, scale, bias}) ? cuda::run_norm<true, cuda::pack_columns> : cuda::run_norm<true, 1>;
    return run(s, y, mean, rstd, x, scale, bias, epsilon);
  });
}

status layer_norm_grad(stream &s, const view &dx, const view &dscale, const view &dbias, const view &dy, const view &x,
                       const view &scale, const view &mean, const view &rstd) {
  WINDLASS_TRY(cuda::check_norm({x, dx, dy}, {mean, rstd}, {scale, dscale, dbias}));
  return s.submit({"layer_norm_grad", 0, bytes_of({dx, dy, x, mean, rstd}), {x.elements()}}, [=, &s]() -> status {
    const auto run = cuda::have_packs({x, dx, dy, scale}) ? cuda::run_norm_grad<true, cuda::pack_columns>
                                                          : cuda::run_norm_grad<true, 1>;
    return run(s, dx, dscale, dbias, dy, x, scale, mean, rstd);
  });
}

status rms_norm(stream &s, const view &y, const view &rstd, const view &x, const view &scale, double epsilon) {
  WINDLASS_TRY(cuda::check_norm({x, y}, {rstd}, {scale}));
  return s.submit({"rms_norm", 0, bytes_of({y, rstd, x}), {x.elements()}}, [=, &s]() -> status {
    const auto run =
        cuda::have_packs({x, y, scale}) ? cuda::run_norm<false, cuda::pack_columns> : cuda::run_norm<false, 1>;
    return run(s, y, view(), rstd, x, scale, view(), epsilon);
  });
}

status rms_norm_grad(stream &s, const view &dx, const view &dscale, const view &dy, const view &x, const view &scale,
                     const view &rstd) {
  WINDLASS_TRY(cuda::check_norm({x, dx, dy}, {rstd}, {scale, dscale}));
  return s.submit({"rms_norm_grad", 0, bytes_of({dx, dy, x, rstd}), {x.elements()}}, [=, &s]() -> status {
    const auto run = cuda::have_packs({x, dx, dy, scale}) ? cuda::run_norm_grad<false, cuda::pack_columns>
                                                          : cuda::run_norm_grad<false, 1>;
    return run(s, dx, dscale, view(), dy, x, scale, view(), rstd);
  });
}

} // namespace windlass::rt
