// Normalisation of rows: layer norm, and RMS norm, which is the same without the mean. A warp for each row of packs
// that its registers hold, a block for others and for gradients: a warp with its sums in registers took 14 % longer on
// an H200.
#include "rows.h"

namespace windlass::rt {

namespace cuda {
namespace {

/// The most blocks that sum columns while they go over rows: a large device is full with them, and few parts are left
/// to join.
constexpr std::int64_t most_sums = 1056;

/// The numbers of a row: read.
template <int W> struct read_row {
  rows x;

  template <class Team> __device__ row_part<1, W, Team> part(std::int64_t row, std::int64_t n) const {
    return row_part<1, W, Team>({x.of}, {x.at.offset(row)}, {x.stride}, n);
  }
};

/// The numbers of a row: the sum of two or three others, which is also written. Each number is read and written by one
/// thread, so that the sum and what is made of it may take a term's place.
template <int W, int terms> struct add_rows {
  rows x, of[terms];

  template <class Team> __device__ row_part<1, W, Team> part(std::int64_t row, std::int64_t n) const {
    const std::int64_t base = x.at.offset(row);
    std::int64_t from[terms];
    for (int t = 0; t < terms; ++t)
      from[t] = of[t].at.offset(row);
    return row_part<1, W, Team>::made({x.of}, {base}, {x.stride}, n, [&](std::int64_t i, auto &sum) {
      load(sum.of[0], of[0].of, from[0] + i * of[0].stride);
      for (int t = 1; t < terms; ++t) {
        auto term = sum;
        load(term.of[0], of[t].of, from[t] + i * of[t].stride);
        for (int w = 0; w < sum.width; ++w)
          sum.of[0][w] += term.of[0][w];
      }
      store(x.of, base + i * x.stride, sum.of[0]);
      round_as(x.of.type, sum.of[0]);
    });
  }
};

template <bool centers, int W, class Team, class Row>
__global__ void __launch_bounds__(block_threads, Team::kept > 4 ? 2 : 4)
    normalize(rows y, rows mean, rows rstd, Row x, columns scale, columns bias, std::int64_t n, float epsilon) {
  for (std::int64_t row = Team::first_row(); row < y.at.count(); row += Team::row_step()) {
    const auto part = x.template part<Team>(row, n);
    const std::int64_t out = y.at.offset(row);
    float m = 0;
    if (centers) {
      part.each([&](std::int64_t, const auto &in) {
        for (int w = 0; w < in.width; ++w)
          m += in.of[0][w];
      });
      m = Team::template reduce<add_values>(m) / static_cast<float>(n);
    }
    float squares = 0;
    part.each([&](std::int64_t, const auto &in) {
      for (int w = 0; w < in.width; ++w) {
        const float d = in.of[0][w] - m;
        squares += d * d;
      }
    });
    squares = Team::template reduce<add_values>(squares);
    const float r = 1.0f / std::sqrt(squares / static_cast<float>(n) + epsilon);
    if (Team::thread() == 0) {
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

/// A thread's sums for the gradients of scale and bias: of its columns, over the rows of its block.
template <int W> struct column_sums {
  float scale[W] = {}, bias[W] = {};

  /// Adds a row, of which `slope` is the gradient of the result and `normal` the normalised numbers.
  __device__ void add(const float (&slope)[W], const float (&normal)[W]) {
    for (int w = 0; w < W; ++w) {
      scale[w] += slope[w] * normal[w];
      bias[w] += slope[w];
    }
  }
  __device__ void store(float *of_block, std::int64_t n, std::int64_t column) const {
    for (int w = 0; w < W; ++w) {
      of_block[column + w] = scale[w];
      of_block[n + column + w] = bias[w];
    }
  }
};

/// dx, to which `added` is added where it is not absent. Without `centers` the mean is 0 and does not depend on x. With
/// `sums`, where a thread has one pack of columns, also the sums of each block: partial[block, 0 or 1, column].
template <bool centers, int W, bool sums>
__global__ void __launch_bounds__(block_threads, 3)
    normalize_grad(rows dx, rows dy, rows x, columns scale, rows mean, rows rstd, rows added, std::int64_t n,
                   float *partial) {
  column_sums<W> of_pack;
  column_sums<1> of_single;
  for (std::int64_t row = blockIdx.x; row < x.at.count(); row += gridDim.x) {
    const row_part<2, W> part({x.of, dy.of}, {x.at.offset(row), dy.at.offset(row)}, {x.stride, dy.stride}, n);
    const std::int64_t out = dx.at.offset(row), more = added.of.is_absent() ? 0 : added.at.offset(row);
    const float m = centers ? mean.of.get(mean.at.offset(row)) : 0.0f, r = rstd.of.get(rstd.at.offset(row));
    float sum = 0, dot = 0;
    part.each([&](std::int64_t i, auto in) {
      auto factor = in;
      load(factor.of[0], scale, i, 1.0f);
      for (int w = 0; w < in.width; ++w) {
        in.of[0][w] = (in.of[0][w] - m) * r;
        const float g = in.of[1][w] * factor.of[0][w];
        sum += g;
        dot += g * in.of[0][w];
      }
      if constexpr (sums) {
        if constexpr (in.width == W)
          of_pack.add(in.of[1], in.of[0]);
        else
          of_single.add(in.of[1], in.of[0]);
      }
    });
    sum = centers ? reduce_block<add_values>(sum) / static_cast<float>(n) : 0.0f;
    dot = reduce_block<add_values>(dot) / static_cast<float>(n);
    part.each([&](std::int64_t i, auto in) {
      auto factor = in;
      load(factor.of[0], scale, i, 1.0f);
      for (int w = 0; w < in.width; ++w)
        in.of[0][w] = r * (in.of[1][w] * factor.of[0][w] - sum - (in.of[0][w] - m) * r * dot);
      if (!added.of.is_absent()) {
        round_as(dx.of.type, in.of[0]); // as two commands do
        load(in.of[1], added.of, more + i * added.stride);
        for (int w = 0; w < in.width; ++w)
          in.of[0][w] += in.of[1][w];
      }
      store(dx.of, out + i * dx.stride, in.of[0]);
    });
  }
  if constexpr (sums) {
    float *const of_block = partial + blockIdx.x * 2 * n;
    const std::int64_t whole = n / W * W;
    if (threadIdx.x * std::int64_t(W) < whole)
      of_pack.store(of_block, n, threadIdx.x * std::int64_t(W));
    if (whole + threadIdx.x < n)
      of_single.store(of_block, n, whole + threadIdx.x);
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
template <class P>
__global__ void join_parameter_grad(columns dscale, columns dbias, const P *partial, std::int64_t n, std::int64_t parts,
                                    bool accumulate) {
  const auto write = [&](const columns &to, std::int64_t i, double sum) {
    if (!to.is_absent())
      to.of.set(to.offset(i), (accumulate ? to.of.get(to.offset(i)) : 0.0f) + static_cast<float>(sum));
  };
  for (std::int64_t first = blockIdx.x * std::int64_t(warp_lanes); first < 2 * n;
       first += gridDim.x * std::int64_t(warp_lanes)) {
    const std::int64_t i = first + threadIdx.x % warp_lanes;
    const double sum = join_parts<add_values>(partial + i, i < 2 * n, parts, 2 * n, 0.0);
    if (threadIdx.x >= warp_lanes)
      continue;
    if (i < n)
      write(dscale, i, sum);
    else if (i < 2 * n)
      write(dbias, i - n, sum);
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

template <bool centers, int W, class Row>
status run_norm_of(stream &s, const view &y, const view &mean, const view &rstd, const Row &x, const view &scale,
                   const view &bias, double epsilon) {
  const int lead = y.rank - 1;
  const std::int64_t n = y.sizes[lead];
  const rows of_y(y, lead), of_mean(centers ? mean : rstd, lead), of_rstd(rstd, lead);
  const auto small = static_cast<float>(epsilon);
  if constexpr (W > 1) {
    const unsigned blocks = blocks_for(of_y.at.count(), block_threads / warp_lanes);
    if (packs_of_lane(n) <= 4)
      return launch(s, blocks, block_threads, normalize<centers, W, warp_team<4>, Row>, of_y, of_mean, of_rstd, x,
                    columns(scale), columns(bias), n, small);
    if (packs_of_lane(n) <= 8)
      return launch(s, blocks, block_threads, normalize<centers, W, warp_team<8>, Row>, of_y, of_mean, of_rstd, x,
                    columns(scale), columns(bias), n, small);
  }
  return launch(s, blocks_for_rows(of_y.at.count()), threads_for_row(n, W), normalize<centers, W, block_team, Row>,
                of_y, of_mean, of_rstd, x, columns(scale), columns(bias), n, small);
}

template <bool centers, int W>
status run_norm(stream &s, const view &y, const view &mean, const view &rstd, const view &x, const view &scale,
                const view &bias, double epsilon) {
  return run_norm_of<centers, W>(s, y, mean, rstd, read_row<W>{rows(x, x.rank - 1)}, scale, bias, epsilon);
}

template <bool centers, int W>
status run_add_norm(stream &s, const view &sum, const view &y, const view &mean, const view &rstd, const view &a,
                    const view &b, const view &c, const view &scale, const view &bias, double epsilon) {
  const int lead = sum.rank - 1;
  const rows of_sum(sum, lead), of_a(a, lead), of_b(b, lead);
  if (c.is_absent())
    return run_norm_of<centers, W>(s, y, mean, rstd, add_rows<W, 2>{of_sum, {of_a, of_b}}, scale, bias, epsilon);
  return run_norm_of<centers, W>(s, y, mean, rstd, add_rows<W, 3>{of_sum, {of_a, of_b, rows(c, lead)}}, scale, bias,
                                 epsilon);
}

template <class P>
status join_sums(stream &s, const view &dscale, const view &dbias, const P *partial, std::int64_t n, std::int64_t parts,
                 bool accumulate) {
  return launch(s, blocks_for(2 * n, warp_lanes), join_threads, join_parameter_grad<P>, columns(dscale), columns(dbias),
                partial, n, parts, accumulate);
}

template <bool centers, int W>
status run_norm_grad(stream &s, const view &dx, const view &dscale, const view &dbias, const view &dy, const view &x,
                     const view &scale, const view &mean, const view &rstd, const view &added, bool accumulate) {
  const int lead = x.rank - 1, threads = threads_for_row(x.sizes[lead], W);
  const std::int64_t n = x.sizes[lead], packs = std::max<std::int64_t>((n + W - 1) / W, 1);
  const rows of_dx(dx, lead), of_x(x, lead), of_dy(dy, lead), of_added(added, added.is_absent() ? 0 : lead);
  const rows of_mean(centers ? mean : rstd, lead), of_rstd(rstd, lead);
  const std::int64_t room = s.scratch_bytes() / std::max<std::int64_t>(n * 16, 1);
  if (room < 1)
    return internal_error("the gradient of a norm needs " + std::to_string(n * 16) +
                          " bytes of scratch, the stream has " + std::to_string(s.scratch_bytes()));
  if constexpr (W > 1)
    if (threads >= packs) { // a thread has one pack of each row
      const std::int64_t parts = std::min<std::int64_t>({of_x.at.count(), most_sums, 2 * room});
      float *const partial = reinterpret_cast<float *>(s.scratch());
      WINDLASS_TRY(launch(s, static_cast<unsigned>(parts), threads, normalize_grad<centers, W, true>, of_dx, of_dy,
                          of_x, columns(scale), of_mean, of_rstd, of_added, n, partial));
      return join_sums<float>(s, dscale, dbias, partial, n, parts, accumulate);
    }
  WINDLASS_TRY(launch(s, blocks_for_rows(of_x.at.count()), threads, normalize_grad<centers, W, false>, of_dx, of_dy,
                      of_x, columns(scale), of_mean, of_rstd, of_added, n, nullptr));
  const std::int64_t parts = parts_for(of_x.at.count(), packs, room);
  double *const partial = reinterpret_cast<double *>(s.scratch());
  WINDLASS_TRY(launch(s, blocks_for(packs * parts), block_threads, parameter_grad<centers, W>, partial, of_dy, of_x,
                      of_mean, of_rstd, n, parts));
  return join_sums<double>(s, dscale, dbias, partial, n, parts, accumulate);
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

status add_layer_norm(stream &s, const view &sum, const view &y, const view &mean, const view &rstd, const view &a,
                      const view &b, const view &c, const view &scale, const view &bias, double epsilon) {
  WINDLASS_TRY(cuda::check_norm({sum, y, a, b, c.is_absent() ? b : c}, {mean, rstd}, {scale, bias}));
  return s.submit(
      {"add_layer_norm", 0, bytes_of({sum, y, mean, rstd, a, b, c}), {sum.elements()}}, [=, &s]() -> status {
        const auto run = cuda::have_packs({sum, y, a, b, c, scale, bias}) ? cuda::run_add_norm<true, cuda::pack_columns>
                                                                          : cuda::run_add_norm<true, 1>;
        return run(s, sum, y, mean, rstd, a, b, c, scale, bias, epsilon);
      });
}

status layer_norm_grad(stream &s, const view &dx, const view &dscale, const view &dbias, const view &dy, const view &x,
                       const view &scale, const view &mean, const view &rstd, const view &added, bool accumulate) {
  WINDLASS_TRY(cuda::check_norm({x, dx, dy, added.is_absent() ? dx : added}, {mean, rstd}, {scale, dscale, dbias}));
  return s.submit(
      {"layer_norm_grad", 0, bytes_of({dx, dy, x, mean, rstd, added}), {x.elements()}}, [=, &s]() -> status {
        const auto run = cuda::have_packs({x, dx, dy, scale, added}) ? cuda::run_norm_grad<true, cuda::pack_columns>
                                                                     : cuda::run_norm_grad<true, 1>;
        return run(s, dx, dscale, dbias, dy, x, scale, mean, rstd, added, accumulate);
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

status add_rms_norm(stream &s, const view &sum, const view &y, const view &rstd, const view &a, const view &b,
                    const view &c, const view &scale, double epsilon) {
  WINDLASS_TRY(cuda::check_norm({sum, y, a, b, c.is_absent() ? b : c}, {rstd}, {scale}));
  return s.submit({"add_rms_norm", 0, bytes_of({sum, y, rstd, a, b, c}), {sum.elements()}}, [=, &s]() -> status {
    const auto run = cuda::have_packs({sum, y, a, b, c, scale}) ? cuda::run_add_norm<false, cuda::pack_columns>
                                                                : cuda::run_add_norm<false, 1>;
    return run(s, sum, y, view(), rstd, a, b, c, scale, view(), epsilon);
  });
}

status rms_norm_grad(stream &s, const view &dx, const view &dscale, const view &dy, const view &x, const view &scale,
                     const view &rstd, const view &added, bool accumulate) {
  WINDLASS_TRY(cuda::check_norm({x, dx, dy, added.is_absent() ? dx : added}, {rstd}, {scale, dscale}));
  return s.submit({"rms_norm_grad", 0, bytes_of({dx, dy, x, rstd, added}), {x.elements()}}, [=, &s]() -> status {
    const auto run = cuda::have_packs({x, dx, dy, scale, added}) ? cuda::run_norm_grad<false, cuda::pack_columns>
                                                                 : cuda::run_norm_grad<false, 1>;
    return run(s, dx, dscale, view(), dy, x, scale, view(), rstd, added, accumulate);
  });
}

} // namespace windlass::rt
