// Attention by tiles in shared memory, with the softmax made as keys arrive. Scores are made again for the gradient, in
// one pass over queries (dq) and one over keys (dk, dv), so that nothing is added by two blocks and no scratch is
// needed. The library (attentions.h) computes those that it was measured to compute faster, and kernels on tensor cores
// (matrix_attention.h) those of 16 bits.
//
// A block has four warps. A warp owns some rows of the block's own tile (queries, or keys for dk and dv), a lane one
// column of the tile that passes by, and a few columns of the results of its warp's rows.
#include "attention_parts.h"
#include "attentions.h"
#include "matrix_attention.h"

namespace windlass::rt {

namespace cuda {
namespace {

constexpr int attention_threads = 128, attention_warps = attention_threads / warp_lanes;

/// T rows of a tile; deeper heads have fewer.
template <int T> struct tile {
  static constexpr int depth = 2048 / T;             ///< columns of a head at most
  static constexpr int pitch = depth + 1;            ///< so that lanes of one column meet different banks
  static constexpr int rows = T / attention_warps;   ///< of a warp
  static constexpr int columns = depth / warp_lanes; ///< of a lane
  static constexpr int floats = T * pitch;
};

/// Rows first … of one head, with zeros behind the last row and column.
template <int T>
__device__ inline void load_tile(float *to, const heads &from, std::int64_t batch, std::int64_t head,
                                 std::int64_t first, std::int64_t limit, std::int64_t depth) {
  using shape = tile<T>;
  for (int i = static_cast<int>(threadIdx.x); i < T * shape::depth; i += attention_threads) {
    const int row = i / shape::depth, column = i % shape::depth;
    to[row * shape::pitch + column] =
        first + row < limit && column < depth ? from.get(batch, head, first + row, column) : 0.0f;
  }
}

/// products[r] = row r of the warp's own rows times the lane's row of the other tile.
template <int T> __device__ inline void dot_rows(float *products, const float *own, const float *other) {
  using shape = tile<T>;
  for (int r = 0; r < shape::rows; ++r)
    products[r] = 0;
#pragma unroll 8
  for (int e = 0; e < shape::depth; ++e) {
    const float x = other[e];
#pragma unroll
    for (int r = 0; r < shape::rows; ++r)
      products[r] += own[r * shape::pitch + e] * x;
  }
}

/// sums[r][c] += sum over the tile's rows j of (lane j's weights[r]) * rows[j][column c of this lane].
template <int T>
__device__ inline void add_rows(float (&sums)[tile<T>::rows][tile<T>::columns], const float *weights, const float *rows,
                                int lane) {
  using shape = tile<T>;
#pragma unroll 4
  for (int j = 0; j < T; ++j) {
    float values[shape::columns];
#pragma unroll
    for (int c = 0; c < shape::columns; ++c)
      values[c] = rows[j * shape::pitch + lane + warp_lanes * c];
#pragma unroll
    for (int r = 0; r < shape::rows; ++r) {
      const float weight = __shfl_sync(all_lanes, weights[r], j);
#pragma unroll
      for (int c = 0; c < shape::columns; ++c)
        sums[r][c] += weight * values[c];
    }
  }
}

template <int T> __device__ inline void clear(float (&sums)[tile<T>::rows][tile<T>::columns]) {
  for (int r = 0; r < tile<T>::rows; ++r)
    for (int c = 0; c < tile<T>::columns; ++c)
      sums[r][c] = 0;
}

/// Writes the warp's rows.
template <int T>
__device__ inline void store_rows(const heads &to, const float (&sums)[tile<T>::rows][tile<T>::columns],
                                  std::int64_t batch, std::int64_t head, std::int64_t first, std::int64_t limit,
                                  std::int64_t depth, int lane, float factor) {
  for (int r = 0; r < tile<T>::rows; ++r)
    for (int c = 0; c < tile<T>::columns; ++c)
      if (first + r < limit && lane + warp_lanes * c < depth)
        to.set(batch, head, first + r, lane + warp_lanes * c, sums[r][c] * factor);
}

template <int T>
__global__ void __launch_bounds__(attention_threads)
    attention_kernel(heads out, heads lse, heads q, heads k, heads v, heads mask, attention_sizes of) {
  using shape = tile<T>;
  __shared__ float queries[shape::floats], keys[shape::floats], values[shape::floats];
  const int lane = static_cast<int>(threadIdx.x) % warp_lanes;
  const int own = static_cast<int>(threadIdx.x) / warp_lanes * shape::rows, column = lane % T;
  const std::int64_t blocks = (of.queries + T - 1) / T, group = of.heads / of.kv_heads;
  for (std::int64_t item = blockIdx.x; item < of.batch * of.heads * blocks; item += gridDim.x) {
    const std::int64_t batch = item / blocks / of.heads, head = item / blocks % of.heads;
    const std::int64_t first = item % blocks * T;
    float sums[shape::rows][shape::columns], most[shape::rows], total[shape::rows];
    clear<T>(sums);
    for (int r = 0; r < shape::rows; ++r) {
      most[r] = -std::numeric_limits<float>::infinity();
      total[r] = 0;
    }
    __syncthreads();
    load_tile<T>(queries, q, batch, head, first, of.queries, of.depth);
    const std::int64_t end = of.end_of(first + T - 1);
    for (std::int64_t begin = 0; begin < end; begin += T) {
      __syncthreads();
      load_tile<T>(keys, k, batch, head / group, begin, of.keys, of.depth);
      load_tile<T>(values, v, batch, head / group, begin, of.keys, of.value_depth);
      __syncthreads();
      float weights[shape::rows];
      dot_rows<T>(weights, queries + own * shape::pitch, keys + column * shape::pitch);
#pragma unroll
      for (int r = 0; r < shape::rows; ++r) {
        const std::int64_t query = first + own + r, key = begin + column;
        const bool is_seen = lane < T && of.sees(query, key);
        float score = -std::numeric_limits<float>::infinity();
        if (is_seen)
          score = weights[r] * of.scale + (mask.of.is_absent() ? 0.0f : mask.get(batch, head, query, key));
        const float now = larger_number::join(reduce_warp<larger_number>(score), most[r]);
        // Without any number so far the base is 0, as infinities have no difference.
        const float base = now - now != 0 ? 0.0f : now;
        const float shrink = windlass::scalar::exp(most[r] - base);
        weights[r] = is_seen ? windlass::scalar::exp(score - base) : 0.0f;
        total[r] = total[r] * shrink + reduce_warp<add_values>(weights[r]);
        for (int c = 0; c < shape::columns; ++c)
          sums[r][c] *= shrink;
        most[r] = now;
      }
      add_rows<T>(sums, weights, values, lane);
    }
#pragma unroll
    for (int r = 0; r < shape::rows; ++r) {
      const float factor = total[r] == 0 ? 0.0f : 1.0f / total[r]; // every key masked
      for (int c = 0; c < shape::columns; ++c)
        sums[r][c] *= factor;
      const float base = most[r] - most[r] != 0 ? 0.0f : most[r];
      if (lane == 0 && first + own + r < of.queries)
        lse.set(batch, head, first + own + r, 0, base + windlass::scalar::log(total[r]));
    }
    store_rows<T>(out, sums, batch, head, first + own, of.queries, of.value_depth, lane, 1.0f);
  }
}

/// The weight of a key and the gradient of its score.
struct slope {
  float weight, score;
};
__device__ inline slope slope_of(float product, float value_product, float mask, float lse, float delta, bool is_seen,
                                 float scale) {
  // A row whose every key is masked has lse -infinity and no gradient.
  if (!is_seen || lse == -std::numeric_limits<float>::infinity())
    return {0.0f, 0.0f};
  const float weight = windlass::scalar::exp(product * scale + mask - lse);
  return {weight, weight * (value_product - delta)};
}

template <int T>
__global__ void __launch_bounds__(attention_threads)
    query_grad_kernel(heads dq, heads dout, heads q, heads k, heads v, heads mask, heads out, heads lse,
                      attention_sizes of) {
  using shape = tile<T>;
  __shared__ float queries[shape::floats], slopes[shape::floats], keys[shape::floats], values[shape::floats];
  const int lane = static_cast<int>(threadIdx.x) % warp_lanes;
  const int own = static_cast<int>(threadIdx.x) / warp_lanes * shape::rows, column = lane % T;
  const std::int64_t blocks = (of.queries + T - 1) / T, group = of.heads / of.kv_heads;
  for (std::int64_t item = blockIdx.x; item < of.batch * of.heads * blocks; item += gridDim.x) {
    const std::int64_t batch = item / blocks / of.heads, head = item / blocks % of.heads;
    const std::int64_t first = item % blocks * T;
    float sums[shape::rows][shape::columns], delta[shape::rows], total[shape::rows];
    clear<T>(sums);
    for (int r = 0; r < shape::rows; ++r) {
      const std::int64_t query = first + own + r;
      delta[r] = query < of.queries ? delta_of(out, dout, batch, head, query, of.value_depth, lane) : 0.0f;
      total[r] = query < of.queries ? lse.get(batch, head, query, 0) : 0.0f;
    }
    __syncthreads();
    load_tile<T>(queries, q, batch, head, first, of.queries, of.depth);
    load_tile<T>(slopes, dout, batch, head, first, of.queries, of.value_depth);
    const std::int64_t end = of.end_of(first + T - 1);
    for (std::int64_t begin = 0; begin < end; begin += T) {
      __syncthreads();
      load_tile<T>(keys, k, batch, head / group, begin, of.keys, of.depth);
      load_tile<T>(values, v, batch, head / group, begin, of.keys, of.value_depth);
      __syncthreads();
      float products[shape::rows], value_products[shape::rows];
      dot_rows<T>(products, queries + own * shape::pitch, keys + column * shape::pitch);
      dot_rows<T>(value_products, slopes + own * shape::pitch, values + column * shape::pitch);
#pragma unroll
      for (int r = 0; r < shape::rows; ++r) {
        const std::int64_t query = first + own + r, key = begin + column;
        const bool is_seen = lane < T && of.sees(query, key);
        const float added = is_seen && !mask.of.is_absent() ? mask.get(batch, head, query, key) : 0.0f;
        products[r] = slope_of(products[r], value_products[r], added, total[r], delta[r], is_seen, of.scale).score;
      }
      add_rows<T>(sums, products, keys, lane);
    }
    store_rows<T>(dq, sums, batch, head, first + own, of.queries, of.depth, lane, of.scale);
  }
}

template <int T>
__global__ void __launch_bounds__(attention_threads)
    key_grad_kernel(heads dk, heads dv, heads dout, heads q, heads k, heads v, heads mask, heads out, heads lse,
                    attention_sizes of) {
  using shape = tile<T>;
  __shared__ float queries[shape::floats], slopes[shape::floats], keys[shape::floats], values[shape::floats];
  __shared__ float deltas[T], totals[T];
  const int lane = static_cast<int>(threadIdx.x) % warp_lanes;
  const int own = static_cast<int>(threadIdx.x) / warp_lanes * shape::rows, column = lane % T;
  const std::int64_t blocks = (of.keys + T - 1) / T, group = of.heads / of.kv_heads;
  for (std::int64_t item = blockIdx.x; item < of.batch * of.kv_heads * blocks; item += gridDim.x) {
    const std::int64_t batch = item / blocks / of.kv_heads, kv_head = item / blocks % of.kv_heads;
    const std::int64_t first = item % blocks * T;
    float key_sums[shape::rows][shape::columns], value_sums[shape::rows][shape::columns];
    clear<T>(key_sums);
    clear<T>(value_sums);
    __syncthreads();
    load_tile<T>(keys, k, batch, kv_head, first, of.keys, of.depth);
    load_tile<T>(values, v, batch, kv_head, first, of.keys, of.value_depth);
    // The first query that sees one of these keys.
    const std::int64_t earliest = of.causal ? first - (of.keys - of.queries) : 0;
    for (std::int64_t head = kv_head * group; head < (kv_head + 1) * group; ++head)
      for (std::int64_t begin = earliest <= 0 ? 0 : earliest / T * T; begin < of.queries; begin += T) {
        __syncthreads();
        load_tile<T>(queries, q, batch, head, begin, of.queries, of.depth);
        load_tile<T>(slopes, dout, batch, head, begin, of.queries, of.value_depth);
        for (int r = 0; r < shape::rows; ++r) {
          const std::int64_t query = begin + own + r;
          const float delta = query < of.queries ? delta_of(out, dout, batch, head, query, of.value_depth, lane) : 0.0f;
          if (lane == 0) {
            deltas[own + r] = delta;
            totals[own + r] = query < of.queries ? lse.get(batch, head, query, 0) : 0.0f;
          }
        }
        __syncthreads();
        float products[shape::rows], value_products[shape::rows];
        dot_rows<T>(products, keys + own * shape::pitch, queries + column * shape::pitch);
        dot_rows<T>(value_products, values + own * shape::pitch, slopes + column * shape::pitch);
#pragma unroll
        for (int r = 0; r < shape::rows; ++r) {
          const std::int64_t query = begin + column, key = first + own + r;
          const bool is_seen = lane < T && of.sees(query, key);
          const float added = is_seen && !mask.of.is_absent() ? mask.get(batch, head, query, key) : 0.0f;
          const slope found =
              slope_of(products[r], value_products[r], added, totals[column], deltas[column], is_seen, of.scale);
          products[r] = found.score;
          value_products[r] = found.weight;
        }
        add_rows<T>(key_sums, products, queries, lane);
        add_rows<T>(value_sums, value_products, slopes, lane);
      }
    store_rows<T>(dk, key_sums, batch, kv_head, first + own, of.keys, of.depth, lane, of.scale);
    store_rows<T>(dv, value_sums, batch, kv_head, first + own, of.keys, of.value_depth, lane, 1.0f);
  }
}

status check_attention(const view &q, const view &k, const view &v, const view &mask, const view &out,
                       const view &lse) {
  bool fits = q.rank == 4 && k.rank == 4 && v.rank == 4 && out.rank == 4 && lse.rank == 3 &&
              are_real({q, k, v, mask, out, lse});
  fits = fits && k.sizes[1] > 0 && q.sizes[1] % k.sizes[1] == 0 && q.sizes[3] == k.sizes[3] &&
         out.sizes[3] == v.sizes[3] && k.sizes[0] == q.sizes[0] && v.sizes[0] == q.sizes[0] &&
         v.sizes[1] == k.sizes[1] && v.sizes[2] == k.sizes[2] && has_same_dims(out, q, 3) && has_same_dims(lse, q, 3);
  if (fits && !mask.is_absent())
    fits = mask.rank == 4 && has_same_dims(mask, q, 3) && mask.sizes[3] == k.sizes[2];
  WINDLASS_TRY(check_views(fits, "attention"));
  if (std::max(q.sizes[3], v.sizes[3]) > tile<8>::depth)
    return internal_error("attention's heads have " + std::to_string(std::max(q.sizes[3], v.sizes[3])) +
                          " columns, the kernels of this back end take up to " + std::to_string(tile<8>::depth));
  return {};
}

attention_sizes shape_of(const view &q, const view &k, const view &v, double scale, bool causal) {
  return {q.sizes[0], q.sizes[1], k.sizes[1], q.sizes[2], k.sizes[2], q.sizes[3], v.sizes[3], static_cast<float>(scale),
          causal};
}

/// Calls f with the rows of the largest tile that heads of that depth fit into.
template <class F> status with_tile(const attention_sizes &of, F f) {
  const std::int64_t depth = std::max(of.depth, of.value_depth);
  if (depth <= tile<32>::depth)
    return f(std::integral_constant<int, 32>());
  if (depth <= tile<16>::depth)
    return f(std::integral_constant<int, 16>());
  return f(std::integral_constant<int, 8>());
}

/// `products` matrix products over the pairs of a query and a key that it sees.
work attention_work(const char *name, const attention_sizes &of, std::int64_t products, std::int64_t bytes) {
  std::int64_t pairs = 0;
  for (std::int64_t t = 0; t < of.queries; ++t)
    pairs += of.end_of(t);
  return {
      name, 2 * products * of.batch * of.heads * pairs * of.depth, bytes, {of.batch, of.heads, of.queries, of.depth}};
}

/// By the library where it is faster, else by `own`.
status run_attention(stream &s, const attention_views &views, double scale, bool causal,
                     const std::function<status()> &own) {
  attention_shape shape;
  if (!describe_attention(views, scale, causal, shape))
    return own();
  const attention_memory memory = {{views.q.data, views.k.data, views.v.data, views.out.data, views.dout.data,
                                    views.dq.data, views.dk.data, views.dv.data},
                                   views.lse.data};
  return device_stream_of(s).attentions().run(s, shape, memory, own);
}

} // namespace

heads rows_of(const view &lse) {
  view wide = lse;
  wide.strides[3] = 0;
  return wide;
}

} // namespace cuda

status attention(stream &s, const view &out, const view &lse, const view &q, const view &k, const view &v,
                 const view &mask, double scale, bool causal) {
  WINDLASS_TRY(cuda::check_attention(q, k, v, mask, out, lse));
  const cuda::attention_sizes of = cuda::shape_of(q, k, v, scale, causal);
  return s.submit(cuda::attention_work("attention", of, 2, bytes_of({out, lse, q, k, v, mask})), [=, &s]() -> status {
    const auto own = [&]() -> status {
      if (cuda::takes_matrix_units({q, k, v, out}))
        return cuda::attention_by_matrices(s, out, lse, q, k, v, mask, of);
      return cuda::with_tile(of, [&](auto rows) {
        constexpr int t = decltype(rows)::value;
        const std::int64_t items = of.batch * of.heads * ((of.queries + t - 1) / t);
        return cuda::launch(s, cuda::blocks_for_rows(items), cuda::attention_threads, cuda::attention_kernel<t>,
                            cuda::heads(out), cuda::rows_of(lse), cuda::heads(q), cuda::heads(k), cuda::heads(v),
                            cuda::heads(mask), of);
      });
    };
    return cuda::run_attention(s, {q, k, v, mask, out, lse, {}, {}, {}, {}}, scale, causal, own);
  });
}

status attention_grad(stream &s, const view &dq, const view &dk, const view &dv, const view &dout, const view &q,
                      const view &k, const view &v, const view &mask, const view &out, const view &lse, double scale,
                      bool causal) {
  WINDLASS_TRY(cuda::check_attention(q, k, v, mask, out, lse));
  WINDLASS_TRY(cuda::check_attention(dq, dk, dv, mask, dout, lse));
  const cuda::attention_sizes of = cuda::shape_of(q, k, v, scale, causal);
  return s.submit(cuda::attention_work("attention_grad", of, 5, bytes_of({dq, dk, dv, dout, q, k, v, mask, out, lse})),
                  [=, &s]() -> status {
                    const auto own = [&]() -> status {
                      if (cuda::takes_matrix_units({q, k, v, out, dq, dk, dv, dout}))
                        return cuda::attention_grad_by_matrices(s, dq, dk, dv, dout, q, k, v, mask, out, lse, of);
                      return cuda::with_tile(of, [&](auto rows) {
                        constexpr int t = decltype(rows)::value;
                        const std::int64_t of_queries = of.batch * of.heads * ((of.queries + t - 1) / t);
                        const std::int64_t of_keys = of.batch * of.kv_heads * ((of.keys + t - 1) / t);
                        WINDLASS_TRY(cuda::launch(s, cuda::blocks_for_rows(of_queries), cuda::attention_threads,
                                                  cuda::query_grad_kernel<t>, cuda::heads(dq), cuda::heads(dout),
                                                  cuda::heads(q), cuda::heads(k), cuda::heads(v), cuda::heads(mask),
                                                  cuda::heads(out), cuda::rows_of(lse), of));
                        return cuda::launch(s, cuda::blocks_for_rows(of_keys), cuda::attention_threads,
                                            cuda::key_grad_kernel<t>, cuda::heads(dk), cuda::heads(dv),
                                            cuda::heads(dout), cuda::heads(q), cuda::heads(k), cuda::heads(v),
                                            cuda::heads(mask), cuda::heads(out), cuda::rows_of(lse), of);
                      });
                    };
                    return cuda::run_attention(s, {q, k, v, mask, out, lse, dout, dq, dk, dv}, scale, causal, own);
                  });
}

} // namespace windlass::rt
