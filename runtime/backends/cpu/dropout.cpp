// Dropout whose mask is computed from the samples' keys, in the forward and again in the backward pass.
#include "rows.h"

#include "windlass/rt/kernels.h"
#include "windlass/rt/philox.h"

namespace windlass::rt {

status dropout(stream &s, const view &y, const view &x, const view &keys, double ratio) {
  bool fits = x.rank >= 1 && y.rank == x.rank && keys.rank == 1 && x.type == element_type::f32 &&
              y.type == element_type::f32 && keys.type == element_type::i64 && keys.sizes[0] == x.sizes[0];
  for (int d = 0; d < x.rank && fits; ++d)
    fits = x.sizes[d] == y.sizes[d];
  if (!fits)
    return internal_error("dropout got views whose types, ranks or sizes do not fit");
  return s.submit({"dropout", 0, bytes_of({y, x}), {x.elements()}}, [=, threads = s.threads()]() -> status {
    const cpu::sequence of_x(x, 1, x.rank), of_y(y, 1, y.rank);
    const std::int64_t n = of_x.count(), groups = (n + 3) / 4;
    const std::uint64_t threshold = dropout_threshold(ratio);
    const float scale = ratio < 1 ? static_cast<float>(1 / (1 - ratio)) : 0.0f;
    const bool is_even = of_x.is_even() && of_y.is_even();
    // Work is divided by groups of four elements, which share one run of the generator.
    detail::parallel(threads, x.sizes[0] * groups, cpu::grain / 16,
                     [&](std::int64_t begin, std::int64_t end, std::int32_t) {
                       for (std::int64_t i = begin; i < end; ++i) {
                         const std::int64_t sample = i / groups, group = i % groups;
                         const float *in = x.as<const float>() + sample * x.strides[0];
                         float *out = y.as<float>() + sample * y.strides[0];
                         const std::array<std::uint32_t, 4> words =
                             dropout_words(keys.as<const std::int64_t>()[sample * keys.strides[0]], group);
                         for (std::int64_t e = group * 4, k = 0; k < 4 && e < n; ++k, ++e) {
                           const std::int64_t from = is_even ? e * of_x.stride() : of_x.offset(e);
                           const std::int64_t to = is_even ? e * of_y.stride() : of_y.offset(e);
                           out[to] = words[static_cast<std::size_t>(k)] < threshold ? 0.0f : in[from] * scale;
                         }
                       }
                     });
    return {};
  });
}

} // namespace windlass::rt
