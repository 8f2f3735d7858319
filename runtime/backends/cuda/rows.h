// Rows of views for kernels that give each row a block: 16 bytes of 16-bit values at a time where the layout allows it,
// and what a thread has read stays in its registers for the next pass.
#ifndef WINDLASS_BACKENDS_CUDA_ROWS_H
#define WINDLASS_BACKENDS_CUDA_ROWS_H

#include "kernel.h"

#include "windlass/rt/map.h"

namespace windlass::rt::cuda {

/// Columns that a thread reads or writes at once where it can.
constexpr int pack_columns = 8;

/// A vector over the columns that may be absent, with its stride.
struct columns {
  operand of;
  std::int64_t stride;
  columns(const view &v) : of(v), stride(last_stride(v)) {} // NOLINT: as operand
  WINDLASS_FN bool is_absent() const { return of.is_absent(); }
  WINDLASS_FN std::int64_t offset(std::int64_t i) const { return i * stride; }
};

/// Rows of a view with the stride of its last dim.
struct rows {
  operand of;
  sequence at;
  std::int64_t stride;
  rows(const view &v, int lead) : of(v), at(v, 0, lead), stride(v.rank > lead ? last_stride(v) : 1) {}
};

/// Returns whether every pack of a row of the view begins at a multiple of the bytes of one access.
inline bool has_packs(const view &v) {
  if (v.is_absent())
    return true;
  bool has = last_stride(v) == 1 && reinterpret_cast<std::uintptr_t>(v.data) % 16 == 0;
  for (int d = 0; d + 1 < v.rank; ++d)
    has = has && (v.sizes[d] == 1 || v.strides[d] % pack_columns == 0);
  return has;
}
inline bool have_packs(std::initializer_list<view> views) {
  bool have = true;
  for (const view &v : views)
    have = have && has_packs(v);
  return have;
}

/// Returns whether the view's elements lie in whole packs of `pack` along the sequence, which is made of some of its
/// dims.
inline bool has_packs_along(const sequence &inner, const view &v, std::int64_t pack = pack_columns) {
  bool has = inner.stride() == 1 && inner.run() % pack == 0 && reinterpret_cast<std::uintptr_t>(v.data) % 16 == 0;
  int neighbours = 0;
  for (int d = 0; d < v.rank; ++d) {
    if (v.sizes[d] == 1)
      continue;
    neighbours += v.strides[d] == 1;
    has = has && (v.strides[d] == 1 || v.strides[d] % pack == 0);
  }
  return has && neighbours == 1;
}

/// Returns the threads for each row where a block has several rows: a power of two that is enough for its packs, if it
/// can be.
inline int lanes_for(std::int64_t packs) {
  int lanes = 1;
  while (lanes < block_threads && lanes < packs)
    lanes *= 2;
  return lanes;
}

/// Returns the threads of a block for rows of `columns` columns: whole warps, no more than have work.
inline int threads_for_row(std::int64_t columns, int width, int most = block_threads) {
  const std::int64_t warps = (columns + width * warp_lanes - 1) / (width * warp_lanes);
  return static_cast<int>(std::clamp<std::int64_t>(warps * warp_lanes, warp_lanes, most));
}

/// Returns into how many parts a kernel cuts rows whose columns are summed: enough of its packs to fill a large device,
/// of 16 rows or more, at most as many as there is room for.
inline std::int64_t parts_for(std::int64_t rows, std::int64_t packs, std::int64_t room) {
  constexpr std::int64_t enough_threads = 1 << 17;
  return std::clamp<std::int64_t>(std::min(rows / 16, enough_threads / packs), 1, room);
}

template <class T, int W> __device__ inline void load_as(float (&to)[W], const std::byte *data, std::int64_t at) {
  constexpr int each = W == 1 ? 1 : 16 / sizeof(T);
  for (int p = 0; p < W / each; ++p) {
    const auto part = reinterpret_cast<const detail::pack<T, each> *>(reinterpret_cast<const T *>(data) + at)[p];
    for (int w = 0; w < each; ++w)
      to[p * each + w] = static_cast<float>(part.of[w]);
  }
}

template <class T, int W> __device__ inline void store_as(std::byte *data, std::int64_t at, const float (&from)[W]) {
  T *const to = reinterpret_cast<T *>(data) + at;
  if constexpr (W == 1) {
    *to = T(from[0]);
  } else if constexpr (sizeof(T) == 2) {
    // As words, since a compiler may store a pack of halves one by one.
    static_assert(W == 8);
    detail::pack<std::uint32_t, 4> words;
    for (int p = 0; p < 4; ++p)
      words.of[p] = std::uint32_t(T(from[2 * p]).bits) | std::uint32_t(T(from[2 * p + 1]).bits) << 16;
    *reinterpret_cast<detail::pack<std::uint32_t, 4> *>(to) = words;
  } else {
    for (int p = 0; p < W; p += 4)
      *reinterpret_cast<detail::pack<float, 4> *>(to + p) = {{from[p], from[p + 1], from[p + 2], from[p + 3]}};
  }
}

/// Loads W neighbours from `at` on: one, or an aligned pack.
template <int W> __device__ inline void load(float (&to)[W], const operand &from, std::int64_t at) {
  if (from.type == element_type::f32)
    load_as<float>(to, from.data, at);
  else if (from.type == element_type::bf16)
    load_as<detail::bf16>(to, from.data, at);
  else
    load_as<detail::f16>(to, from.data, at);
}

template <int W> __device__ inline void store(const operand &to, std::int64_t at, const float (&from)[W]) {
  if (to.type == element_type::f32)
    store_as<float>(to.data, at, from);
  else if (to.type == element_type::bf16)
    store_as<detail::bf16>(to.data, at, from);
  else
    store_as<detail::f16>(to.data, at, from);
}

/// Rounds the numbers as `store` does.
template <int W> __device__ inline void round_as(element_type type, float (&x)[W]) {
  for (int w = 0; w < W; ++w)
    if (type == element_type::bf16)
      x[w] = static_cast<float>(detail::bf16(x[w]));
    else if (type == element_type::f16)
      x[w] = static_cast<float>(detail::f16(x[w]));
}

/// Loads W columns of a vector, or `otherwise` where it is absent.
template <int W> __device__ inline void load(float (&to)[W], const columns &from, std::int64_t i, float otherwise) {
  if (!from.is_absent())
    return load(to, from.of, from.offset(i));
  for (int w = 0; w < W; ++w)
    to[w] = otherwise;
}

/// The threads that share a row: a block,
struct block_team {
  static constexpr int kept = 2; ///< packs of a row that stay in a thread's registers
  __device__ static unsigned thread() { return threadIdx.x; }
  __device__ static unsigned threads() { return blockDim.x; }
  __device__ static std::int64_t first_row() { return blockIdx.x; }
  __device__ static std::int64_t row_step() { return gridDim.x; }
  template <class Op, class T> __device__ static T reduce(T value) { return reduce_block<Op>(value); }
};
/// or a warp, which needs no barrier, for rows of at most `packs` packs for each of its threads.
template <int packs> struct warp_team {
  static constexpr int kept = packs;
  __device__ static unsigned thread() { return threadIdx.x % warp_lanes; }
  __device__ static unsigned threads() { return warp_lanes; }
  __device__ static std::int64_t first_row() {
    return (blockIdx.x * std::int64_t(blockDim.x) + threadIdx.x) / warp_lanes;
  }
  __device__ static std::int64_t row_step() { return std::int64_t(gridDim.x) * blockDim.x / warp_lanes; }
  template <class Op, class T> __device__ static T reduce(T value) { return reduce_warp<Op>(value); }
};
/// Returns the packs of a row that each thread of a warp has.
inline std::int64_t packs_of_lane(std::int64_t columns) {
  constexpr std::int64_t of_warp = std::int64_t(pack_columns) * warp_lanes;
  return (columns + of_warp - 1) / of_warp;
}

/// The same W neighbouring columns of N rows.
template <int N, int W> struct row_pack {
  static constexpr int width = W;
  float of[N][W];
};

/// Calls f(first column, an empty row_pack of W or 1) for a thread's columns of rows of `size` columns: packs of W go
/// to the threads in turn, of which `skipped` were there before, columns that fill none one by one.
template <int N, int W, class Team = block_team, class F>
__device__ inline void each_pack(std::int64_t size, const F &f, int skipped = 0) {
  const std::int64_t whole = size / W * W;
  for (std::int64_t i = (Team::thread() + std::int64_t(skipped) * Team::threads()) * W; i < whole;
       i += std::int64_t(Team::threads()) * W)
    f(i, row_pack<N, W>());
  if (whole + Team::thread() < size)
    f(whole + Team::thread(), row_pack<N, 1>());
}

/// A thread's columns of N rows of `size` columns each. The first packs, and the column that fills none, stay in
/// registers; what is behind them is read again each time.
template <int N, int W, class Team = block_team> class row_part {
public:
  __device__ row_part(const operand (&of)[N], const std::int64_t (&base)[N], const std::int64_t (&stride)[N],
                      std::int64_t size)
      : row_part(of, base, stride, size, nullptr) {
    keep([&](std::int64_t i, auto &pack) { read(pack, i); });
  }

  /// make(first column, row_pack) computes what the rows hold and writes it to them.
  template <class F>
  __device__ static row_part made(const operand (&of)[N], const std::int64_t (&base)[N],
                                  const std::int64_t (&stride)[N], std::int64_t size, const F &make) {
    row_part part(of, base, stride, size, nullptr);
    part.keep(make);
    const auto later = [&](std::int64_t i, auto pack) {
      if constexpr (pack.width == W)
        make(i, pack);
    };
    each_pack<N, W, Team>(size, later, kept);
    return part;
  }

  /// Calls f(first column, row_pack of W or 1) for each.
  template <class F> __device__ void each(const F &f) const {
#pragma unroll
    for (int p = 0; p < kept; ++p)
      if (column_of(p) < size / W * W)
        f(column_of(p), packs[p]);
    const auto later = [&](std::int64_t i, auto pack) {
      if constexpr (pack.width == W) {
        read(pack, i);
        f(i, pack);
      } else {
        f(i, single);
      }
    };
    each_pack<N, W, Team>(size, later, kept);
  }

private:
  static constexpr int kept = W == 1 ? 4 : Team::kept / N;

  __device__ row_part(const operand (&of)[N], const std::int64_t (&base)[N], const std::int64_t (&stride)[N],
                      std::int64_t size, std::nullptr_t)
      : size(size) {
    for (int k = 0; k < N; ++k) {
      data[k] = of[k].data;
      type[k] = of[k].type;
      from[k] = base[k];
      step[k] = stride[k];
    }
  }

  /// Calls get(first column, row_pack) for what stays in registers.
  template <class F> __device__ void keep(const F &get) {
    const std::int64_t whole = size / W * W;
#pragma unroll
    for (int p = 0; p < kept; ++p)
      if (column_of(p) < whole)
        get(column_of(p), packs[p]);
    if (whole + Team::thread() < size)
      get(whole + Team::thread(), single);
  }

  __device__ std::int64_t column_of(int p) const { return (Team::thread() + std::int64_t(p) * Team::threads()) * W; }
  template <int V> __device__ void read(row_pack<N, V> &pack, std::int64_t i) const {
    for (int k = 0; k < N; ++k)
      load(pack.of[k], operand(data[k], type[k]), from[k] + i * step[k]);
  }

  std::byte *data[N];
  element_type type[N];
  std::int64_t from[N], step[N], size;
  row_pack<N, W> packs[kept];
  row_pack<N, 1> single;
};

/// The threads of a block that joins parts: many, since each has few loads to do and waits for them.
constexpr int join_threads = 1024;

/// Returns the sum of `parts` numbers, `pitch` apart, for each of a warp's columns: the block's warps share the parts,
/// in an order that depends on their number only. The block's first warp gets the sum; every thread takes part.
template <class Op, class T, class P>
__device__ inline T join_parts(const P *of_column, bool is_column, std::int64_t parts, std::int64_t pitch, T start) {
  constexpr int warps = join_threads / warp_lanes;
  __shared__ T of_warp[warps][warp_lanes];
  const unsigned warp = threadIdx.x / warp_lanes, lane = threadIdx.x % warp_lanes;
  T value = start;
  if (is_column)
    for (std::int64_t part = warp; part < parts; part += warps)
      value = Op::join(value, static_cast<T>(of_column[part * pitch]));
  of_warp[warp][lane] = value;
  __syncthreads();
  if (warp == 0)
    for (int w = 1; w < warps; ++w)
      value = Op::join(value, of_warp[w][lane]);
  __syncthreads(); // the next columns write to the same places
  return value;
}

} // namespace windlass::rt::cuda

#endif
