// Rotary position embedding, and dropout whose mask is computed from the samples' keys.
#include "rows.h"

#include "windlass/rt/philox.h"

#include <array>

namespace windlass::rt {

namespace cuda {
namespace {

/// A table over tokens and columns.
struct table {
  operand of;
  std::int64_t row_stride, column_stride;
  table(const view &v) : of(v), row_stride(v.strides[0]), column_stride(last_stride(v)) {} // NOLINT: as operand
  template <int W> __device__ void get(float (&to)[W], std::int64_t row, std::int64_t column) const {
    load(to, of, row * row_stride + column * column_stride);
  }
};

/// A thread for W columns of a row's first half and those of the second that belong to them. Threads of a block are
/// `lanes`, a power of two, for each row.
template <int W>
__global__ void rotary_kernel(rows y, rows x, table cosine, table sine, std::int64_t tokens, std::int64_t half,
                              int lanes, bool transposed) {
  const std::int64_t at_once = blockDim.x / lanes;
  for (std::int64_t row = blockIdx.x * at_once + threadIdx.x / lanes; row < x.at.count(); row += gridDim.x * at_once) {
    const std::int64_t token = row % tokens, in = x.at.offset(row), out = y.at.offset(row);
    for (std::int64_t i = std::int64_t(threadIdx.x % lanes) * W; i < half; i += std::int64_t(lanes) * W) {
      const std::int64_t j = i + half;
      float a[W], b[W], cos_a[W], cos_b[W], sin_a[W], sin_b[W];
      load(a, x.of, in + i * x.stride);
      load(b, x.of, in + j * x.stride);
      cosine.get(cos_a, token, i);
      cosine.get(cos_b, token, j);
      sine.get(sin_a, token, i);
      sine.get(sin_b, token, j);
      for (int w = 0; w < W; ++w) {
        const float first = transposed ? a[w] * cos_a[w] + b[w] * sin_b[w] : a[w] * cos_a[w] - b[w] * sin_a[w];
        b[w] = transposed ? b[w] * cos_b[w] - a[w] * sin_a[w] : b[w] * cos_b[w] + a[w] * sin_b[w];
        a[w] = first;
      }
      store(y.of, out + i * y.stride, a);
      store(y.of, out + j * y.stride, b);
    }
  }
}

/// A thread for each eight elements of a sample, which share two runs of the generator. They are neighbours where W is
/// eight.
template <int W>
__global__ void dropout_kernel(operand y, operand x, const std::int64_t *keys, sequence to, sequence from,
                               std::int64_t samples, std::int64_t y_stride, std::int64_t x_stride,
                               std::int64_t key_stride, std::uint64_t threshold, float scale) {
  constexpr int of_word = 4, of_thread = 2 * of_word;
  const std::int64_t n = from.count(), items = (n + of_thread - 1) / of_thread;
  for (std::int64_t item = grid_thread(); item < samples * items; item += grid_threads()) {
    const std::int64_t sample = item / items, first = item % items * of_thread;
    const std::int64_t key = keys[sample * key_stride];
    const std::array<std::uint32_t, 4> words[2] = {dropout_words(key, first / of_word),
                                                   dropout_words(key, first / of_word + 1)};
    for (int e = 0; e < of_thread && first + e < n; e += W) {
      float value[W];
      load(value, x, sample * x_stride + from.offset(first + e));
      for (int w = 0; w < W; ++w) {
        const std::uint32_t word = words[(e + w) / of_word][static_cast<std::size_t>((e + w) % of_word)];
        value[w] = word < threshold ? 0.0f : value[w] * scale;
      }
      store(y, sample * y_stride + to.offset(first + e), value);
    }
  }
}

bool is_table(const view &v, const view &x) {
  return is_real(v) && v.rank == 2 && v.sizes[0] == x.sizes[x.rank - 2] && v.sizes[1] == x.sizes[x.rank - 1];
}

} // namespace
} // namespace cuda

status rotary(stream &s, const view &y, const view &x, const view &cosine, const view &sine, bool transposed) {
  WINDLASS_TRY(cuda::check_views(x.rank >= 2 && cuda::are_real({x, y}) && cuda::has_same_sizes(x, y) &&
                                     cuda::is_table(cosine, x) && cuda::is_table(sine, x) &&
                                     x.sizes[x.rank - 1] % 2 == 0,
                                 "rotary"));
  return s.submit({"rotary", 0, bytes_of({y, x, cosine, sine}), {x.elements()}}, [=, &s]() -> status {
    const cuda::rows from(x, x.rank - 1);
    const std::int64_t half = x.sizes[x.rank - 1] / 2;
    const bool has_packs = half % cuda::pack_columns == 0 && cuda::have_packs({x, y, cosine, sine});
    const int lanes = cuda::lanes_for(has_packs ? half / cuda::pack_columns : half);
    return cuda::launch(s, cuda::blocks_for(from.at.count() * lanes), cuda::block_threads,
                        has_packs ? cuda::rotary_kernel<cuda::pack_columns> : cuda::rotary_kernel<1>,
                        cuda::rows(y, y.rank - 1), from, cuda::table(cosine), cuda::table(sine), x.sizes[x.rank - 2],
                        half, lanes, transposed);
  });
}

status dropout(stream &s, const view &y, const view &x, const view &keys, double ratio) {
  WINDLASS_TRY(cuda::check_views(x.rank >= 1 && cuda::are_real({x, y}) && cuda::has_same_sizes(x, y) &&
                                     keys.type == element_type::i64 && keys.rank == 1 && keys.sizes[0] == x.sizes[0],
                                 "dropout"));
  return s.submit({"dropout", 0, bytes_of({y, x}), {x.elements()}}, [=, &s]() -> status {
    const detail::sequence to(y, 1, y.rank), from(x, 1, x.rank);
    const float scale = ratio < 1 ? static_cast<float>(1 / (1 - ratio)) : 0.0f;
    const bool has_packs = cuda::has_packs_along(from, x) && cuda::has_packs_along(to, y);
    return cuda::launch(s, cuda::blocks_for(x.elements() / 8 + 1), cuda::block_threads,
                        has_packs ? cuda::dropout_kernel<cuda::pack_columns> : cuda::dropout_kernel<1>,
                        cuda::operand(y), cuda::operand(x), keys.as<const std::int64_t>(), to, from, x.sizes[0],
                        y.strides[0], x.strides[0], keys.strides[0], dropout_threshold(ratio), scale);
  });
}

} // namespace windlass::rt
