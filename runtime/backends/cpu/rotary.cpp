// Rotary position embedding.
#include "rows.h"

#include "windlass/rt/kernels.h"

namespace windlass::rt {

namespace {

bool is_table(const view &table, const view &x) {
  return table.type == element_type::f32 && table.rank == 2 && table.sizes[0] == x.sizes[x.rank - 2] &&
         table.sizes[1] == x.sizes[x.rank - 1];
}

} // namespace

status rotary(stream &s, const view &y, const view &x, const view &cosine, const view &sine, bool transposed) {
  bool fits = x.rank >= 2 && y.rank == x.rank && x.type == element_type::f32 && y.type == element_type::f32 &&
              is_table(cosine, x) && is_table(sine, x) && x.sizes[x.rank - 1] % 2 == 0;
  for (int d = 0; d < x.rank && fits; ++d)
    fits = x.sizes[d] == y.sizes[d];
  if (!fits)
    return internal_error("rotary got views whose types, ranks or sizes do not fit");
  return s.submit({"rotary", 0, bytes_of({y, x, cosine, sine}), {x.elements()}},
                  [=, threads = s.threads()]() -> status {
                    const cpu::sequence of_x(x, 0, x.rank - 1), of_y(y, 0, y.rank - 1);
                    const std::int64_t tokens = x.sizes[x.rank - 2], half = x.sizes[x.rank - 1] / 2;
                    const auto run = [&](auto sx, auto sy, auto sc, auto ss) {
                      cpu::for_rows(threads, of_x.count(), half * 4, [&](std::int64_t row) {
                        const std::int64_t token = row % tokens;
                        const float *in = x.as<const float>() + of_x.offset(row);
                        float *out = y.as<float>() + of_y.offset(row);
                        const float *c = cosine.as<const float>() + token * cosine.strides[0];
                        const float *w = sine.as<const float>() + token * sine.strides[0];
                        if (transposed) {
                          WINDLASS_SIMD
                          for (std::int64_t i = 0; i < half; ++i) {
                            const float a = in[i * sx], b = in[(i + half) * sx];
                            out[i * sy] = a * c[i * sc] + b * w[(i + half) * ss];
                            out[(i + half) * sy] = b * c[(i + half) * sc] - a * w[i * ss];
                          }
                          return;
                        }
                        WINDLASS_SIMD
                        for (std::int64_t i = 0; i < half; ++i) {
                          const float a = in[i * sx], b = in[(i + half) * sx];
                          out[i * sy] = a * c[i * sc] - b * w[i * ss];
                          out[(i + half) * sy] = b * c[(i + half) * sc] + a * w[(i + half) * ss];
                        }
                      });
                    };
                    constexpr cpu::unit_stride one;
                    if (cpu::last_stride(x) == 1 && cpu::last_stride(y) == 1 && cpu::last_stride(cosine) == 1 &&
                        cpu::last_stride(sine) == 1)
                      run(one, one, one, one);
                    else
                      run(cpu::last_stride(x), cpu::last_stride(y), cpu::last_stride(cosine), cpu::last_stride(sine));
                    return {};
                  });
}

} // namespace windlass::rt
