// Reductions over dimensions, and the sum of squares.
#include "rows.h"

#include "windlass/rt/detail/host_squares.h"
#include "windlass/rt/detail/squares.h"

namespace windlass::rt {

namespace cuda {
namespace {

// Sums are kept in double, so that their order hardly matters; memory is the bottleneck.
struct sum_of : add_values {
  using value = double;
  WINDLASS_FN static double start() { return 0; }
  WINDLASS_FN static double take(float x) { return static_cast<double>(x); }
};
struct squares_of : sum_of {
  WINDLASS_FN static double take(float x) { return static_cast<double>(x) * static_cast<double>(x); }
};
struct max_of : larger_value {
  using value = float;
  WINDLASS_FN static float start() { return -std::numeric_limits<float>::infinity(); }
  WINDLASS_FN static float take(float x) { return x; }
};
struct min_of : smaller_value {
  using value = float;
  WINDLASS_FN static float start() { return std::numeric_limits<float>::infinity(); }
  WINDLASS_FN static float take(float x) { return x; }
};

template <class T> __device__ inline void put(const operand &out, std::int64_t at, T value, bool adds) {
  out.set(at, static_cast<float>(adds ? static_cast<T>(out.get(at)) + value : value));
}

/// The sum so far with W neighbours more.
template <class Op, int W>
__device__ inline typename Op::value take(typename Op::value sum, const operand &in, std::int64_t at) {
  float x[W];
  load(x, in, at);
  for (int w = 0; w < W; ++w)
    sum = Op::join(sum, Op::take(x[w]));
  return sum;
}

/// A block for each result.
template <class Op, int W>
__global__ void reduce_rows(operand out, operand in, sequence kept_out, sequence kept_in, sequence reduced, bool adds) {
  for (std::int64_t row = blockIdx.x; row < kept_in.count(); row += gridDim.x) {
    const std::int64_t base = kept_in.offset(row);
    typename Op::value sum = Op::start();
    for (std::int64_t i = threadIdx.x * std::int64_t(W); i < reduced.count(); i += blockDim.x * std::int64_t(W))
      sum = take<Op, W>(sum, in, base + reduced.offset(i));
    sum = reduce_block<Op>(sum);
    if (threadIdx.x == 0)
      put(out, kept_out.offset(row), sum, adds);
  }
}

/// A thread for W results and each part of what they sum, neighbours for neighbours; parts join later.
template <class Op, int W>
__global__ void reduce_columns(typename Op::value *partial, operand in, sequence kept_in, sequence reduced,
                               std::int64_t parts) {
  const std::int64_t columns = kept_in.count(), packs = columns / W;
  for (std::int64_t i = grid_thread(); i < packs * parts; i += grid_threads()) {
    const std::int64_t part = i / packs, column = i % packs * W, base = kept_in.offset(column);
    typename Op::value sums[W];
    for (int w = 0; w < W; ++w)
      sums[w] = Op::start();
    const auto add = [&](const float (&x)[W]) {
      for (int w = 0; w < W; ++w)
        sums[w] = Op::join(sums[w], Op::take(x[w]));
    };
    const std::int64_t end = reduced.count() * (part + 1) / parts;
    // Several loads are on their way before the first is added.
    constexpr int ahead = 4;
    std::int64_t r = reduced.count() * part / parts;
    for (; r + ahead <= end; r += ahead) {
      float x[ahead][W];
      for (int a = 0; a < ahead; ++a)
        load(x[a], in, base + reduced.offset(r + a));
      for (int a = 0; a < ahead; ++a)
        add(x[a]);
    }
    for (; r < end; ++r) {
      float x[W];
      load(x, in, base + reduced.offset(r));
      add(x);
    }
    for (int w = 0; w < W; ++w)
      partial[part * columns + column + w] = sums[w];
  }
}

template <class Op>
__global__ void join_columns(operand out, const typename Op::value *partial, sequence kept_out, std::int64_t parts,
                             bool adds) {
  const std::int64_t columns = kept_out.count();
  for (std::int64_t first = blockIdx.x * std::int64_t(warp_lanes); first < columns;
       first += gridDim.x * std::int64_t(warp_lanes)) {
    const std::int64_t i = first + threadIdx.x % warp_lanes;
    const auto sum = join_parts<Op>(partial + i, i < columns, parts, columns, Op::start());
    if (threadIdx.x < warp_lanes && i < columns)
      put(out, kept_out.offset(i), sum, adds);
  }
}

/// Sums everything into as many partial results as there are blocks.
template <class Op, int W> __global__ void reduce_all(typename Op::value *partial, operand in, sequence elements) {
  typename Op::value sum = Op::start();
  for (std::int64_t i = grid_thread() * W; i < elements.count(); i += grid_threads() * W)
    sum = take<Op, W>(sum, in, elements.offset(i));
  sum = reduce_block<Op>(sum);
  if (threadIdx.x == 0)
    partial[blockIdx.x] = sum;
}

template <class Op>
__global__ void join_all(operand out, const typename Op::value *partial, std::int64_t parts, bool adds) {
  typename Op::value sum = Op::start();
  for (std::int64_t i = threadIdx.x; i < parts; i += blockDim.x)
    sum = Op::join(sum, partial[i]);
  sum = reduce_block<Op>(sum);
  if (threadIdx.x == 0)
    put(out, 0, sum, adds);
}

// The squares of several gradients in one launch: blocks walk over chunks of all of them.

constexpr int square_pack = 4;
constexpr std::int64_t square_chunk = std::int64_t(block_threads) * square_pack * 4;

__host__ __device__ inline std::int64_t count_chunks(const squared_gradients::gradient &g) {
  return (g.elements + square_chunk - 1) / square_chunk;
}

/// Adds the squares of the elements of chunk `chunk` that are this thread's. The order is that of the elements, whether
/// packs are aligned or not.
template <class G>
__device__ inline double add_squares(double sum, const squared_gradients::gradient &g, std::int64_t chunk) {
  const bool is_aligned = reinterpret_cast<std::uintptr_t>(g.data) % (square_pack * sizeof(G)) == 0;
  const G *const elements = reinterpret_cast<const G *>(g.data);
  const std::int64_t begin = chunk * square_chunk, left = g.elements - begin;
  const std::int64_t end = begin + (left < square_chunk ? left : square_chunk);
  for (std::int64_t i = begin + threadIdx.x * square_pack; i < end; i += block_threads * square_pack) {
    const std::int64_t stop = end - i < square_pack ? end : i + square_pack;
    if (is_aligned && stop - i == square_pack) {
      const auto x = *reinterpret_cast<const detail::pack<G, square_pack> *>(elements + i);
      for (const G value : x.of)
        sum = squares_of::join(sum, squares_of::take(static_cast<float>(value)));
    } else {
      for (std::int64_t k = i; k < stop; ++k)
        sum = squares_of::join(sum, squares_of::take(static_cast<float>(elements[k])));
    }
  }
  return sum;
}

/// Sums into as many partial results as there are blocks; a single block writes the result where `partial` is null.
template <class G> __global__ void sum_squares(double *partial, operand out, squared_gradients gradients, bool adds) {
  double sum = squares_of::start();
  std::int64_t chunk = blockIdx.x; // behind those of earlier gradients
  for (int i = 0; i < gradients.count; ++i) {
    const squared_gradients::gradient g = gradients.of[i];
    const std::int64_t chunks = count_chunks(g);
    for (; chunk < chunks; chunk += gridDim.x)
      sum = add_squares<G>(sum, g, chunk);
    chunk -= chunks;
  }
  sum = reduce_block<squares_of>(sum);
  if (threadIdx.x != 0)
    return;
  if (partial != nullptr)
    partial[blockIdx.x] = sum;
  else
    put(out, 0, sum, adds);
}

status sum_squares_of(const stream &s, const operand &out, const squared_gradients &gradients, bool adds) {
  std::int64_t chunks = 0;
  for (int i = 0; i < gradients.count; ++i)
    chunks += count_chunks(gradients.of[i]);
  const std::int64_t room = s.scratch_bytes() / static_cast<std::int64_t>(sizeof(double));
  const std::int64_t blocks = std::min<std::int64_t>({blocks_for(chunks, 1), 1024, std::max<std::int64_t>(room, 1)});
  double *partial = blocks > 1 ? reinterpret_cast<double *>(s.scratch()) : nullptr;
  WINDLASS_TRY(launch(s, static_cast<unsigned>(blocks), block_threads,
                      gradients.type == element_type::bf16 ? sum_squares<detail::bf16> : sum_squares<float>, partial,
                      out, gradients, adds));
  return partial ? launch(s, 1, block_threads, join_all<squares_of>, out, partial, blocks, adds) : ok_status();
}

template <class Op, int W>
status reduce_columns_as(stream &s, const view &out, const view &in, const sequence &kept_in, const sequence &reduced,
                         std::int64_t room, bool adds) {
  using value = typename Op::value;
  const std::int64_t columns = kept_in.count(), packs = columns / W;
  const std::int64_t parts = parts_for(reduced.count(), packs, room / columns);
  value *partial = reinterpret_cast<value *>(s.scratch());
  WINDLASS_TRY(launch(s, blocks_for(packs * parts), block_threads, reduce_columns<Op, W>, partial, operand(in), kept_in,
                      reduced, parts));
  return launch(s, blocks_for(columns, warp_lanes), join_threads, join_columns<Op>, operand(out), partial,
                sequence(out, 0, out.rank), parts, adds);
}

template <class Op> status reduce_as(stream &s, const view &out, const view &in, int reduced_rank, bool adds) {
  using value = typename Op::value;
  const int kept_rank = in.rank - reduced_rank;
  const sequence kept_in(in, 0, kept_rank), kept_out(out, 0, out.rank), reduced(in, kept_rank, in.rank);
  value *partial = reinterpret_cast<value *>(s.scratch());
  const std::int64_t room = s.scratch_bytes() / static_cast<std::int64_t>(sizeof(value));
  constexpr std::int64_t one_block_is_enough = 16 * block_threads;
  if (kept_in.count() == 1 && room > 0 && reduced.count() > one_block_is_enough) {
    const std::int64_t blocks = std::min<std::int64_t>({blocks_for(reduced.count(), 8 * block_threads), 1024, room});
    WINDLASS_TRY(launch(s, static_cast<unsigned>(blocks), block_threads,
                        has_packs_along(reduced, in) ? reduce_all<Op, pack_columns> : reduce_all<Op, 1>, partial,
                        operand(in), reduced));
    return launch(s, 1, block_threads, join_all<Op>, operand(out), partial, blocks, adds);
  }
  const bool is_by_columns = reduced.stride() != 1 && kept_in.stride() == 1 && kept_in.run() >= 8;
  if (is_by_columns && room >= kept_in.count()) {
    const auto run = has_packs_along(kept_in, in) ? reduce_columns_as<Op, pack_columns> : reduce_columns_as<Op, 1>;
    return run(s, out, in, kept_in, reduced, room, adds);
  }
  const bool has_packs = has_packs_along(reduced, in);
  return launch(s, blocks_for_rows(kept_in.count()), threads_for_row(reduced.count(), has_packs ? pack_columns : 1),
                has_packs ? reduce_rows<Op, pack_columns> : reduce_rows<Op, 1>, operand(out), operand(in), kept_out,
                kept_in, reduced, adds);
}

} // namespace
} // namespace cuda

status reduce(stream &s, const view &out, const view &in, std::int32_t reduced_rank, reduction kind, bool accumulate) {
  bool fits = cuda::are_real({out, in}) && reduced_rank >= 0 && out.rank + reduced_rank == in.rank &&
              (!accumulate || kind == reduction::sum);
  if (!fits || !cuda::has_same_dims(out, in, out.rank))
    return internal_error("reduce got views that do not fit, or max or min with accumulate");
  return s.submit({"reduce", 0, bytes_of({out, in}), {in.elements(), out.elements()}}, [=, &s]() -> status {
    switch (kind) {
    case reduction::sum:
      return cuda::reduce_as<cuda::sum_of>(s, out, in, reduced_rank, accumulate);
    case reduction::max:
      return cuda::reduce_as<cuda::max_of>(s, out, in, reduced_rank, false);
    case reduction::min:
      return cuda::reduce_as<cuda::min_of>(s, out, in, reduced_rank, false);
    }
    return {};
  });
}

status square_sum(stream &s, const view &out, const view &in, bool accumulate) {
  if (s.is_on_host())
    return detail::square_sum_on_host(s, out, in, accumulate);
  WINDLASS_TRY(cuda::check_views(cuda::are_real({out, in}), "square_sum"));
  return s.submit({"square_sum", 0, bytes_of({in}), {in.elements()}},
                  [=, &s]() -> status { return cuda::reduce_as<cuda::squares_of>(s, out, in, in.rank, accumulate); });
}

status square_sum_list(stream &s, const view &out, const squared_gradients &gradients, bool accumulate) {
  if (s.is_on_host())
    return detail::square_sum_list_on_host(s, out, gradients, accumulate);
  WINDLASS_TRY(cuda::check_views(out.type == element_type::f32, "square_sum"));
  return s.submit(detail::work_of(gradients), [sum = cuda::operand(out), gradients, accumulate, &s]() -> status {
    return cuda::sum_squares_of(s, sum, gradients, accumulate);
  });
}

} // namespace windlass::rt
