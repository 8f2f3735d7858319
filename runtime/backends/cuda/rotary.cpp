// Rotary position embedding, and dropout whose mask is computed from the samples' keys.
#include "kernel.h"

#include "windlass/rt/philox.h"

namespace windlass::rt {

namespace cuda {
namespace {

/// A table over tokens and columns.
struct table {
  operand of;
  std::int64_t row_stride, column_stride;
  table(const view &v) : of(v), row_stride(v.strides[0]), column_stride(last_stride(v)) {} // NOLINT: as operand
  WINDLASS_FN float get(std::int64_t row, std::int64_t column) const {
    return of.get(row * row_stride + column * column_stride);
  }
};

/// A thread for each pair of a row's halves.
__global__ void rotary_kernel(operand y, operand x, table cosine, table sine, sequence to, sequence from,
                              std::int64_t tokens, std::int64_t half, std::int64_t y_stride, std::int64_t x_stride,
                              bool transposed) {
  for (std::int64_t item = grid_thread(); item < from.count() * half; item += grid_threads()) {
    const std::int64_t row = item / half, i = item % half, j = i + half, token = row % tokens;
    const std::int64_t in = from.offset(row), out = to.offset(row);
    const float a = x.get(in + i * x_stride), b = x.get(in + j * x_stride);
    if (transposed) {
      y.set(out + i * y_stride, a * cosine.get(token, i) + b * sine.get(token, j));
      y.set(out + j * y_stride, b * cosine.get(token, j) - a * sine.get(token, i));
    } else {
      y.set(out + i * y_stride, a * cosine.get(token, i) - b * sine.get(token, i));
      y.set(out + j * y_stride, b * cosine.get(token, j) + a * sine.get(token, j));
    }
  }
}

/// A thread for each four elements of a sample, which share one run of the generator.
__global__ void dropout_kernel(operand y, operand x, const std::int64_t *keys, sequence to, sequence from,
                               std::int64_t samples, std::int64_t y_stride, std::int64_t x_stride,
                               std::int64_t key_stride, std::uint64_t threshold, float scale) {
  const std::int64_t n = from.count(), groups = (n + 3) / 4;
  for (std::int64_t item = grid_thread(); item < samples * groups; item += grid_threads()) {
    const std::int64_t sample = item / groups, group = item % groups;
    const auto words = dropout_words(keys[sample * key_stride], group);
    for (std::int64_t e = group * 4, k = 0; k < 4 && e < n; ++k, ++e) {
      const bool drops = words[static_cast<std::size_t>(k)] < threshold;
      const float value = x.get(sample * x_stride + from.offset(e));
      y.set(sample * y_stride + to.offset(e), drops ? 0.0f : value * scale);
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
    const detail::sequence to(y, 0, y.rank - 1), from(x, 0, x.rank - 1);
    const std::int64_t half = x.sizes[x.rank - 1] / 2;
    return cuda::launch(s, cuda::blocks_for(from.count() * half), cuda::block_threads, cuda::rotary_kernel,
                        cuda::operand(y), cuda::operand(x), cuda::table(cosine), cuda::table(sine), to, from,
                        x.sizes[x.rank - 2], half, cuda::last_stride(y), cuda::last_stride(x), transposed);
  });
}

status dropout(stream &s, const view &y, const view &x, const view &keys, double ratio) {
  WINDLASS_TRY(cuda::check_views(x.rank >= 1 && cuda::are_real({x, y}) && cuda::has_same_sizes(x, y) &&
                                     keys.type == element_type::i64 && keys.rank == 1 && keys.sizes[0] == x.sizes[0],
                                 "dropout"));
  return s.submit({"dropout", 0, bytes_of({y, x}), {x.elements()}}, [=, &s]() -> status {
    const detail::sequence to(y, 1, y.rank), from(x, 1, x.rank);
    const float scale = ratio < 1 ? static_cast<float>(1 / (1 - ratio)) : 0.0f;
    return cuda::launch(s, cuda::blocks_for(x.elements() / 4 + 1), cuda::block_threads, cuda::dropout_kernel,
                        cuda::operand(y), cuda::operand(x), keys.as<const std::int64_t>(), to, from, x.sizes[0],
                        y.strides[0], x.strides[0], keys.strides[0], dropout_threshold(ratio), scale);
  });
}

} // namespace windlass::rt
