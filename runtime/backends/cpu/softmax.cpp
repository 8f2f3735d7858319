// Softmax, and softmax followed by cross entropy.
#include "softmax_row.h"

#include "windlass/rt/kernels.h"

#include <atomic>
#include <string>

namespace windlass::rt {

namespace {

using cpu::sequence;

status check(bool fits, const char *kernel) {
  if (fits)
    return {};
  return internal_error(std::string(kernel) + " got views whose types, ranks or sizes do not fit");
}

bool is_f32(std::initializer_list<view> views) {
  bool all = true;
  for (const view &v : views)
    all = all && v.type == element_type::f32;
  return all;
}

/// Whether both have the same leading `rank` dims.
bool has_same_rows(const view &a, const view &b, int rank) {
  bool same = a.rank >= rank && b.rank >= rank;
  for (int d = 0; d < rank && same; ++d)
    same = a.sizes[d] == b.sizes[d];
  return same;
}

} // namespace

status softmax(stream &s, const view &out, const view &in) {
  WINDLASS_TRY(
      check(is_f32({out, in}) && in.rank >= 1 && out.rank == in.rank && has_same_rows(out, in, in.rank), "softmax"));
  return s.submit({"softmax", 0, bytes_of({out, in}), {in.elements()}}, [=, threads = s.threads()]() -> status {
    const int lead = in.rank - 1;
    const std::int64_t n = in.sizes[lead];
    const sequence to(out, 0, lead), from(in, 0, lead);
    cpu::for_rows(threads, from.count(), n * 4, [&](std::int64_t row) {
      float *y = out.as<float>() + to.offset(row);
      const float *x = in.as<const float>() + from.offset(row);
      if (cpu::last_stride(out) == 1 && cpu::last_stride(in) == 1)
        cpu::softmax_row(y, cpu::unit_stride(), x, cpu::unit_stride(), n);
      else
        cpu::softmax_row(y, cpu::last_stride(out), x, cpu::last_stride(in), n);
    });
    return {};
  });
}

status softmax_grad(stream &s, const view &dx, const view &y, const view &dy) {
  WINDLASS_TRY(check(is_f32({dx, y, dy}) && y.rank >= 1 && dx.rank == y.rank && dy.rank == y.rank &&
                         has_same_rows(dx, y, y.rank) && has_same_rows(dy, y, y.rank),
                     "softmax_grad"));
  return s.submit({"softmax_grad", 0, bytes_of({dx, y, dy}), {y.elements()}}, [=, threads = s.threads()]() -> status {
    const int lead = y.rank - 1;
    const std::int64_t n = y.sizes[lead];
    const sequence to(dx, 0, lead), of_y(y, 0, lead), of_dy(dy, 0, lead);
    const auto run = [&](auto sdx, auto sy, auto sdy) {
      cpu::for_rows(threads, of_y.count(), n * 2, [&](std::int64_t row) {
        float *r = dx.as<float>() + to.offset(row);
        const float *a = y.as<const float>() + of_y.offset(row), *b = dy.as<const float>() + of_dy.offset(row);
        float dot = 0;
#pragma omp simd reduction(+ : dot)
        for (std::int64_t i = 0; i < n; ++i)
          dot += a[i * sy] * b[i * sdy];
        WINDLASS_SIMD
        for (std::int64_t i = 0; i < n; ++i)
          r[i * sdx] = a[i * sy] * (b[i * sdy] - dot);
      });
    };
    if (cpu::last_stride(dx) == 1 && cpu::last_stride(y) == 1 && cpu::last_stride(dy) == 1)
      run(cpu::unit_stride(), cpu::unit_stride(), cpu::unit_stride());
    else
      run(cpu::last_stride(dx), cpu::last_stride(y), cpu::last_stride(dy));
    return {};
  });
}

status softmax_cross_entropy(stream &s, const view &sum, const view &count, const view &lse, const view &logits,
                             const view &labels, std::int64_t ignore_index) {
  WINDLASS_TRY(check(is_f32({sum, count, lse, logits}) && labels.type == element_type::i64 && logits.rank >= 1 &&
                         labels.rank == logits.rank - 1 && lse.rank == labels.rank &&
                         has_same_rows(labels, logits, labels.rank) && has_same_rows(lse, logits, labels.rank),
                     "softmax_cross_entropy"));
  return s.submit(
      {"softmax_cross_entropy", 0, bytes_of({lse, logits, labels}), {labels.elements(), logits.sizes[logits.rank - 1]}},
      [=, threads = s.threads()]() -> status {
        const int lead = logits.rank - 1;
        const std::int64_t classes = logits.sizes[lead], stride = cpu::last_stride(logits);
        const sequence of_logits(logits, 0, lead), of_labels(labels, 0, lead), of_lse(lse, 0, lead);
        const std::int64_t rows = of_logits.count();
        // Sums over parts of a number that does not depend on the threads, so that their order does not either.
        constexpr std::int64_t most = 64;
        double sums[most];
        std::int64_t counts[most], wrong[most];
        const std::int64_t parts = std::clamp<std::int64_t>(rows, 1, most);
        detail::parallel(threads, parts, std::max<std::int64_t>(1, cpu::grain * parts / (rows * classes * 4 + 1)),
                         [&](std::int64_t first, std::int64_t last, std::int32_t) {
                           for (std::int64_t p = first; p < last; ++p) {
                             sums[p] = 0;
                             counts[p] = 0;
                             wrong[p] = -1;
                             for (std::int64_t row = rows * p / parts; row < rows * (p + 1) / parts; ++row) {
                               const float *x = logits.as<const float>() + of_logits.offset(row);
                               const float total = stride == 1 ? cpu::log_sum_exp(x, cpu::unit_stride(), classes)
                                                               : cpu::log_sum_exp(x, stride, classes);
                               lse.as<float>()[of_lse.offset(row)] = total;
                               const std::int64_t label = labels.as<const std::int64_t>()[of_labels.offset(row)];
                               if (label == ignore_index)
                                 continue;
                               if (label < 0 || label >= classes) {
                                 wrong[p] = wrong[p] < 0 ? row : wrong[p];
                                 continue;
                               }
                               sums[p] += static_cast<double>(total - x[label * stride]);
                               ++counts[p];
                             }
                           }
                         });
        double total = 0;
        std::int64_t counted = 0;
        for (std::int64_t p = 0; p < parts; ++p) {
          total += sums[p];
          counted += counts[p];
          if (wrong[p] >= 0)
            return bad_input("label " + std::to_string(labels.as<const std::int64_t>()[of_labels.offset(wrong[p])]) +
                             " at position " + std::to_string(wrong[p]) + " is outside of the " +
                             std::to_string(classes) + " classes; check the data");
        }
        *sum.as<float>() = static_cast<float>(total);
        *count.as<float>() = static_cast<float>(counted);
        return {};
      });
}

status softmax_cross_entropy_grad(stream &s, const view &dlogits, const view &dsum, const view &logits,
                                  const view &labels, const view &lse, std::int64_t ignore_index) {
  WINDLASS_TRY(check(is_f32({dlogits, dsum, logits, lse}) && labels.type == element_type::i64 && logits.rank >= 1 &&
                         dlogits.rank == logits.rank && has_same_rows(dlogits, logits, logits.rank) &&
                         labels.rank == logits.rank - 1 && lse.rank == labels.rank &&
                         has_same_rows(labels, logits, labels.rank) && has_same_rows(lse, logits, labels.rank),
                     "softmax_cross_entropy_grad"));
  return s.submit({"softmax_cross_entropy_grad",
                   0,
                   bytes_of({dlogits, logits, labels, lse}),
                   {labels.elements(), logits.sizes[logits.rank - 1]}},
                  [=, threads = s.threads()]() -> status {
                    const int lead = logits.rank - 1;
                    const std::int64_t classes = logits.sizes[lead];
                    const sequence to(dlogits, 0, lead), from(logits, 0, lead), of_labels(labels, 0, lead),
                        of_lse(lse, 0, lead);
                    const float factor = *dsum.as<const float>();
                    const auto run = [&](auto to_stride, auto from_stride) {
                      cpu::for_rows(threads, from.count(), classes * 4, [&](std::int64_t row) {
                        float *d = dlogits.as<float>() + to.offset(row);
                        const float *x = logits.as<const float>() + from.offset(row);
                        const std::int64_t label = labels.as<const std::int64_t>()[of_labels.offset(row)];
                        if (label == ignore_index) {
                          for (std::int64_t i = 0; i < classes; ++i)
                            d[i * to_stride] = 0;
                          return;
                        }
                        const float total = lse.as<const float>()[of_lse.offset(row)];
                        WINDLASS_SIMD
                        for (std::int64_t i = 0; i < classes; ++i)
                          d[i * to_stride] = factor * windlass::scalar::exp(x[i * from_stride] - total);
                        if (label >= 0 && label < classes)
                          d[label * to_stride] -= factor;
                      });
                    };
                    if (cpu::last_stride(dlogits) == 1 && cpu::last_stride(logits) == 1)
                      run(cpu::unit_stride(), cpu::unit_stride());
                    else
                      run(cpu::last_stride(dlogits), cpu::last_stride(logits));
                    return {};
                  });
}

} // namespace windlass::rt
