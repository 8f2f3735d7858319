// The tiles and passes are those of attention.cpp (T. Dao, "FlashAttention-2", 2023): scores are made as keys arrive
// and again for the gradient, in one pass over queries and one over keys. A warp owns 16 rows of the block's own tile.
// Products have operands of 16 bits and sums in f32, so weights and slopes are rounded before they multiply.
#include "matrix_attention.h"

#include "matrix_units.h"
#include "windlass/rt/map.h"

#include <algorithm>

namespace windlass::rt::cuda {

namespace {

/// The tiles of heads of up to D columns. With more columns they have fewer rows, for which shared memory and registers
/// suffice.
template <class H, int D> struct matrix_tile {
  static constexpr int warps = D <= 64 ? 4 : 2, threads = warps * warp_lanes;
  static constexpr int rows = 16 * warps, pitch = D + 8;
  static constexpr int row_pieces = rows / 8, column_pieces = D / 8;
  struct alignas(16) shared {
    H of[rows * pitch];
  };
  using matrix = matrix_rows<H, pitch>;
};

/// A view [batch, heads, rows, columns] of a type of 16 bits.
struct half_heads {
  heads at;
  bool has_packs;                     ///< 16 bytes of each row are aligned
  half_heads(const view &v) : at(v) { // NOLINT: as operand
    has_packs = v.strides[3] == 1 && v.sizes[3] % 8 == 0 && reinterpret_cast<std::uintptr_t>(v.data) % 16 == 0;
    for (int d = 0; d < 3; ++d)
      has_packs = has_packs && v.strides[d] % 8 == 0;
  }
};

/// Rows first … of one head, with zeros behind the last row and column.
template <class H, int D>
__device__ inline void load_tile(H *to, const half_heads &from, std::int64_t batch, std::int64_t head,
                                 std::int64_t first, std::int64_t limit, std::int64_t depth) {
  using shape = matrix_tile<H, D>;
  constexpr int packs = D / 8;
  using eight = detail::pack<H, 8>;
  const H *data = reinterpret_cast<const H *>(from.at.of.data);
  for (int i = static_cast<int>(threadIdx.x); i < shape::rows * packs; i += shape::threads) {
    const int row = i / packs, column = i % packs * 8;
    eight all;
    const bool is_row = first + row < limit;
    if (is_row && from.has_packs && column < depth) {
      all = *reinterpret_cast<const eight *>(data + from.at.at(batch, head, first + row, column));
    } else {
      for (int w = 0; w < 8; ++w) {
        all.of[w].bits = 0;
        if (is_row && column + w < depth)
          all.of[w] = data[from.at.at(batch, head, first + row, column + w)];
      }
    }
    *reinterpret_cast<eight *>(to + row * shape::pitch + column) = all;
  }
}

/// The lane's place in a piece of sums: row and column of its number `i`, which is in piece `n`.
__device__ inline int row_in_piece(int lane, int i) { return lane / 4 + i / 2 * 8; }
__device__ inline int column_in_piece(int lane, int n, int i) { return 8 * n + lane % 4 * 2 + i % 2; }

/// Calls f(n, i) for the numbers of N pieces; pieces are in registers, so all places are known when this is compiled.
template <int N, class F> __device__ inline void for_each_number(F f) {
#pragma unroll
  for (int n = 0; n < N; ++n)
#pragma unroll
    for (int i = 0; i < 4; ++i)
      f(n, i);
}

template <int N> __device__ inline void clear_sums(sum_piece (&sums)[N]) {
  for_each_number<N>([&](int n, int i) { sums[n][i] = 0; });
}

/// sums = (16 rows of `left` from `own` on) times (all rows of `right`) transposed.
template <class H, int D>
__device__ inline void dot_rows(sum_piece (&sums)[matrix_tile<H, D>::row_pieces], const H *left, int own,
                                const H *right, int lane) {
  using shape = matrix_tile<H, D>;
  const typename shape::matrix a{left}, b{right};
  clear_sums(sums);
#pragma unroll
  for (int k = 0; k < D / 16; ++k) {
    left_piece of_left;
    a.load_left(of_left, own, 16 * k, lane);
#pragma unroll
    for (int n = 0; n < shape::row_pieces; ++n) {
      right_piece of_right;
      b.load_turned(of_right, 8 * n, 16 * k, lane);
      multiply_add<H>(sums[n], of_left, of_right);
    }
  }
}

/// sums += weights, rounded, times rows.
template <class H, int D>
__device__ inline void add_rows(sum_piece (&sums)[matrix_tile<H, D>::column_pieces],
                                const sum_piece (&weights)[matrix_tile<H, D>::row_pieces], const H *rows, int lane) {
  using shape = matrix_tile<H, D>;
  const typename shape::matrix b{rows};
#pragma unroll
  for (int k = 0; k < shape::rows / 16; ++k) {
    left_piece of_weights;
    round_to_left<H>(of_weights, weights, k);
#pragma unroll
    for (int n = 0; n < shape::column_pieces; ++n) {
      right_piece of_rows;
      b.load_right(of_rows, 16 * k, 8 * n, lane);
      multiply_add<H>(sums[n], of_weights, of_rows);
    }
  }
}

/// Writes the warp's 16 rows from `first` on; factors[r] is that of row lane / 4 + 8 r.
template <int N>
__device__ inline void store_rows(const heads &to, const sum_piece (&sums)[N], std::int64_t batch, std::int64_t head,
                                  std::int64_t first, std::int64_t limit, std::int64_t depth, int lane,
                                  const float (&factors)[2]) {
  for_each_number<N>([&](int n, int i) {
    const std::int64_t row = first + row_in_piece(lane, i);
    const int column = column_in_piece(lane, n, i);
    if (row < limit && column < depth)
      to.set(batch, head, row, column, sums[n][i] * factors[i / 2]);
  });
}

/// Reduces over the four lanes that share rows of a piece.
template <class Op> __device__ inline float reduce_group(float value) {
  value = Op::join(value, __shfl_xor_sync(all_lanes, value, 1));
  return Op::join(value, __shfl_xor_sync(all_lanes, value, 2));
}

/// Returns how many of the `rows` keys from `begin` on a query sees: the first ones.
__device__ inline int count_seen(const attention_sizes &of, std::int64_t query, std::int64_t begin, int rows) {
  const std::int64_t seen = query < of.queries ? of.end_of(query) - begin : 0;
  return seen < 0 ? 0 : seen > rows ? rows : static_cast<int>(seen);
}

/// Makes scores of products of the queries `query` and `query + 8` and the keys from `begin` on; seen[r] keys have one.
template <int N>
__device__ inline void scale_and_mask(sum_piece (&scores)[N], float scale, const heads &mask, std::int64_t batch,
                                      std::int64_t head, std::int64_t query, std::int64_t begin, const int (&seen)[2],
                                      int lane) {
  for_each_number<N>([&](int n, int i) { scores[n][i] *= scale; });
  if (!mask.of.is_absent())
    for_each_number<N>([&](int n, int i) {
      const int column = column_in_piece(lane, n, i);
      if (column < seen[i / 2])
        scores[n][i] += mask.get(batch, head, query + i / 2 * 8, begin + column);
    });
}

template <class H, int D>
__global__ void __launch_bounds__(matrix_tile<H, D>::threads)
    matrix_attention_kernel(heads out, heads lse, half_heads q, half_heads k, half_heads v, heads mask,
                            attention_sizes of) {
  using shape = matrix_tile<H, D>;
  __shared__ typename shape::shared queries, keys, values;
  const int lane = static_cast<int>(threadIdx.x) % warp_lanes, own = static_cast<int>(threadIdx.x) / warp_lanes * 16;
  const std::int64_t blocks = (of.queries + shape::rows - 1) / shape::rows, group = of.heads / of.kv_heads;
  for (std::int64_t item = blockIdx.x; item < of.batch * of.heads * blocks; item += gridDim.x) {
    const std::int64_t batch = item / blocks / of.heads, head = item / blocks % of.heads;
    const std::int64_t first = item % blocks * shape::rows;
    sum_piece sums[shape::column_pieces], scores[shape::row_pieces];
    clear_sums(sums);
    float most[2], total[2] = {0, 0};
    most[0] = most[1] = -std::numeric_limits<float>::infinity();
    __syncthreads();
    load_tile<H, D>(queries.of, q, batch, head, first, of.queries, of.depth);
    const std::int64_t end = of.end_of(first + shape::rows - 1);
    for (std::int64_t begin = 0; begin < end; begin += shape::rows) {
      __syncthreads();
      load_tile<H, D>(keys.of, k, batch, head / group, begin, of.keys, of.depth);
      load_tile<H, D>(values.of, v, batch, head / group, begin, of.keys, of.value_depth);
      __syncthreads();
      dot_rows<H, D>(scores, queries.of, own, keys.of, lane);
      const std::int64_t query = first + own + row_in_piece(lane, 0);
      const int seen[2] = {count_seen(of, query, begin, shape::rows), count_seen(of, query + 8, begin, shape::rows)};
      scale_and_mask(scores, of.scale, mask, batch, head, query, begin, seen, lane);
      float now[2] = {most[0], most[1]};
      for_each_number<shape::row_pieces>([&](int n, int i) {
        if (column_in_piece(lane, n, i) >= seen[i / 2])
          scores[n][i] = -std::numeric_limits<float>::infinity();
        now[i / 2] = larger_number::join(scores[n][i], now[i / 2]);
      });
#pragma unroll
      for (int r = 0; r < 2; ++r) {
        now[r] = reduce_group<larger_number>(now[r]);
        // Without any number so far the base is 0, as infinities have no difference.
        const float base = now[r] - now[r] != 0 ? 0.0f : now[r];
        const float shrink = windlass::scalar::exp(most[r] - base);
        total[r] *= shrink;
#pragma unroll
        for (int n = 0; n < shape::column_pieces; ++n)
          for (int i = 2 * r; i < 2 * r + 2; ++i)
            sums[n][i] *= shrink;
#pragma unroll
        for (int n = 0; n < shape::row_pieces; ++n)
          for (int i = 2 * r; i < 2 * r + 2; ++i) {
            scores[n][i] = windlass::scalar::exp(scores[n][i] - base);
            total[r] += scores[n][i];
          }
        most[r] = now[r];
      }
      add_rows<H, D>(sums, scores, values.of, lane);
    }
    float factors[2];
    for (int r = 0; r < 2; ++r) {
      total[r] = reduce_group<add_values>(total[r]);
      factors[r] = total[r] == 0 ? 0.0f : 1.0f / total[r]; // every key masked
      const std::int64_t query = first + own + lane / 4 + 8 * r;
      const float base = most[r] - most[r] != 0 ? 0.0f : most[r];
      if (lane % 4 == 0 && query < of.queries)
        lse.set(batch, head, query, 0, base + windlass::scalar::log(total[r]));
    }
    store_rows(out, sums, batch, head, first + own, of.queries, of.value_depth, lane, factors);
  }
}

template <class H, int D>
__global__ void __launch_bounds__(matrix_tile<H, D>::threads)
    matrix_query_grad_kernel(heads dq, half_heads dout, half_heads q, half_heads k, half_heads v, heads mask, heads out,
                             heads lse, attention_sizes of) {
  using shape = matrix_tile<H, D>;
  __shared__ typename shape::shared queries, slopes, keys, values;
  const int lane = static_cast<int>(threadIdx.x) % warp_lanes, own = static_cast<int>(threadIdx.x) / warp_lanes * 16;
  const std::int64_t blocks = (of.queries + shape::rows - 1) / shape::rows, group = of.heads / of.kv_heads;
  for (std::int64_t item = blockIdx.x; item < of.batch * of.heads * blocks; item += gridDim.x) {
    const std::int64_t batch = item / blocks / of.heads, head = item / blocks % of.heads;
    const std::int64_t first = item % blocks * shape::rows;
    sum_piece sums[shape::column_pieces], scores[shape::row_pieces], products[shape::row_pieces];
    clear_sums(sums);
    float delta[2] = {0, 0}, total[2] = {0, 0};
    for (int row = 0; row < 16; ++row) {
      const std::int64_t query = first + own + row;
      if (query >= of.queries)
        break; // the same for the whole warp
      const float found = delta_of(out, dout.at, batch, head, query, of.value_depth, lane);
      if (lane / 4 == row % 8) {
        delta[row / 8] = found;
        total[row / 8] = lse.get(batch, head, query, 0);
      }
    }
    __syncthreads();
    load_tile<H, D>(queries.of, q, batch, head, first, of.queries, of.depth);
    load_tile<H, D>(slopes.of, dout, batch, head, first, of.queries, of.value_depth);
    const std::int64_t end = of.end_of(first + shape::rows - 1);
    for (std::int64_t begin = 0; begin < end; begin += shape::rows) {
      __syncthreads();
      load_tile<H, D>(keys.of, k, batch, head / group, begin, of.keys, of.depth);
      load_tile<H, D>(values.of, v, batch, head / group, begin, of.keys, of.value_depth);
      __syncthreads();
      dot_rows<H, D>(scores, queries.of, own, keys.of, lane);
      dot_rows<H, D>(products, slopes.of, own, values.of, lane);
      const std::int64_t query = first + own + row_in_piece(lane, 0);
      int seen[2];
      for (int r = 0; r < 2; ++r) // a row whose every key is masked has no gradient
        seen[r] =
            total[r] == -std::numeric_limits<float>::infinity() ? 0 : count_seen(of, query + 8 * r, begin, shape::rows);
      scale_and_mask(scores, of.scale, mask, batch, head, query, begin, seen, lane);
      for_each_number<shape::row_pieces>([&](int n, int i) {
        const float weight = windlass::scalar::exp(scores[n][i] - total[i / 2]);
        scores[n][i] = column_in_piece(lane, n, i) < seen[i / 2] ? weight * (products[n][i] - delta[i / 2]) : 0.0f;
      });
      add_rows<H, D>(sums, scores, keys.of, lane);
    }
    const float factors[2] = {of.scale, of.scale};
    store_rows(dq, sums, batch, head, first + own, of.queries, of.depth, lane, factors);
  }
}

template <class H, int D>
__global__ void __launch_bounds__(matrix_tile<H, D>::threads)
    matrix_key_grad_kernel(heads dk, heads dv, half_heads dout, half_heads q, half_heads k, half_heads v, heads mask,
                           heads out, heads lse, attention_sizes of) {
  using shape = matrix_tile<H, D>;
  __shared__ typename shape::shared queries, slopes, keys, values;
  __shared__ float deltas[shape::rows], totals[shape::rows];
  __shared__ int seen[shape::rows]; // of the block's keys, by each query
  const int lane = static_cast<int>(threadIdx.x) % warp_lanes, own = static_cast<int>(threadIdx.x) / warp_lanes * 16;
  const std::int64_t blocks = (of.keys + shape::rows - 1) / shape::rows, group = of.heads / of.kv_heads;
  for (std::int64_t item = blockIdx.x; item < of.batch * of.kv_heads * blocks; item += gridDim.x) {
    const std::int64_t batch = item / blocks / of.kv_heads, kv_head = item / blocks % of.kv_heads;
    const std::int64_t first = item % blocks * shape::rows;
    sum_piece key_sums[shape::column_pieces], value_sums[shape::column_pieces];
    clear_sums(key_sums);
    clear_sums(value_sums);
    __syncthreads();
    load_tile<H, D>(keys.of, k, batch, kv_head, first, of.keys, of.depth);
    load_tile<H, D>(values.of, v, batch, kv_head, first, of.keys, of.value_depth);
    // The first query that sees one of these keys.
    const std::int64_t earliest = of.causal ? first - (of.keys - of.queries) : 0;
    for (std::int64_t head = kv_head * group; head < (kv_head + 1) * group; ++head)
      for (std::int64_t begin = earliest <= 0 ? 0 : earliest / shape::rows * shape::rows; begin < of.queries;
           begin += shape::rows) {
        __syncthreads();
        load_tile<H, D>(queries.of, q, batch, head, begin, of.queries, of.depth);
        load_tile<H, D>(slopes.of, dout, batch, head, begin, of.queries, of.value_depth);
        for (int row = own; row < own + 16; ++row) {
          const std::int64_t query = begin + row;
          const bool is_query = query < of.queries; // the same for the whole warp
          const float found = is_query ? delta_of(out, dout.at, batch, head, query, of.value_depth, lane) : 0.0f;
          if (lane == 0) {
            deltas[row] = found;
            totals[row] = is_query ? lse.get(batch, head, query, 0) : 0.0f;
            seen[row] =
                totals[row] == -std::numeric_limits<float>::infinity() ? 0 : count_seen(of, query, first, shape::rows);
          }
        }
        __syncthreads();
        sum_piece scores[shape::row_pieces], products[shape::row_pieces];
        dot_rows<H, D>(scores, keys.of, own, queries.of, lane);
        dot_rows<H, D>(products, values.of, own, slopes.of, lane);
        for_each_number<shape::row_pieces>([&](int n, int i) { scores[n][i] *= of.scale; });
        if (!mask.of.is_absent())
          for_each_number<shape::row_pieces>([&](int n, int i) {
            const int row = own + row_in_piece(lane, i), column = column_in_piece(lane, n, i);
            if (row < seen[column])
              scores[n][i] += mask.get(batch, head, begin + column, first + row);
          });
        for_each_number<shape::row_pieces>([&](int n, int i) {
          const int column = column_in_piece(lane, n, i);
          const bool is_seen = own + row_in_piece(lane, i) < seen[column];
          const float weight = is_seen ? windlass::scalar::exp(scores[n][i] - totals[column]) : 0.0f;
          scores[n][i] = is_seen ? weight * (products[n][i] - deltas[column]) : 0.0f;
          products[n][i] = weight;
        });
        add_rows<H, D>(key_sums, scores, queries.of, lane);
        add_rows<H, D>(value_sums, products, slopes.of, lane);
      }
    const float of_keys[2] = {of.scale, of.scale}, of_values[2] = {1, 1};
    store_rows(dk, key_sums, batch, kv_head, first + own, of.keys, of.depth, lane, of_keys);
    store_rows(dv, value_sums, batch, kv_head, first + own, of.keys, of.value_depth, lane, of_values);
  }
}

/// Calls f(type, columns) with the type of 16 bits and the columns of the tile that heads fit into.
template <class F> status with_matrix_tile(element_type type, const attention_sizes &of, F f) {
  const bool is_deep = std::max(of.depth, of.value_depth) > 64;
  const auto with_type = [&](auto half) {
    return is_deep ? f(half, std::integral_constant<int, 128>()) : f(half, std::integral_constant<int, 64>());
  };
  return type == element_type::bf16 ? with_type(detail::bf16()) : with_type(detail::f16());
}

/// Returns the blocks of a launch in which `heads` heads have `length` rows each, and a tile has `rows` of them.
unsigned blocks_for_tiles(std::int64_t heads, std::int64_t length, int rows) {
  return blocks_for_rows(heads * ((length + rows - 1) / rows));
}

} // namespace

bool takes_matrix_units(std::initializer_list<view> operands) {
  static const bool has_units = [] {
    int device = 0;
    cudaDeviceProp properties = {};
    return cudaGetDevice(&device) == cudaSuccess && cudaGetDeviceProperties(&properties, device) == cudaSuccess &&
           properties.major >= 8;
  }();
  const element_type type = operands.begin()->type;
  return has_units && (type == element_type::bf16 || type == element_type::f16) &&
         std::all_of(operands.begin(), operands.end(),
                     [&](const view &each) { return each.type == type && each.sizes[3] <= 128; });
}

status attention_by_matrices(stream &s, const view &out, const view &lse, const view &q, const view &k, const view &v,
                             const view &mask, const attention_sizes &of) {
  return with_matrix_tile(q.type, of, [&](auto half, auto columns) {
    using shape = matrix_tile<decltype(half), decltype(columns)::value>;
    return launch(s, blocks_for_tiles(of.batch * of.heads, of.queries, shape::rows), shape::threads,
                  matrix_attention_kernel<decltype(half), decltype(columns)::value>, heads(out), rows_of(lse),
                  half_heads(q), half_heads(k), half_heads(v), heads(mask), of);
  });
}

status attention_grad_by_matrices(stream &s, const view &dq, const view &dk, const view &dv, const view &dout,
                                  const view &q, const view &k, const view &v, const view &mask, const view &out,
                                  const view &lse, const attention_sizes &of) {
  return with_matrix_tile(q.type, of, [&](auto half, auto columns) -> status {
    using shape = matrix_tile<decltype(half), decltype(columns)::value>;
    WINDLASS_TRY(launch(s, blocks_for_tiles(of.batch * of.heads, of.queries, shape::rows), shape::threads,
                        matrix_query_grad_kernel<decltype(half), decltype(columns)::value>, heads(dq), half_heads(dout),
                        half_heads(q), half_heads(k), half_heads(v), heads(mask), heads(out), rows_of(lse), of));
    return launch(s, blocks_for_tiles(of.batch * of.kv_heads, of.keys, shape::rows), shape::threads,
                  matrix_key_grad_kernel<decltype(half), decltype(columns)::value>, heads(dk), heads(dv),
                  half_heads(dout), half_heads(q), half_heads(k), half_heads(v), heads(mask), heads(out), rows_of(lse),
                  of);
  });
}

} // namespace windlass::rt::cuda
