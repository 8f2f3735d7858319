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

namespace {

bool fits_labels(const view &logits, const view &labels) {
  return is_f32({logits}) && labels.type == element_type::i64 && logits.rank >= 1 && labels.rank == logits.rank - 1 &&
         has_same_rows(labels, logits, labels.rank);
}
bool fits_rows(const view &lse, const view &labels) {
  return is_f32({lse}) && lse.rank == labels.rank && has_same_rows(lse, labels, labels.rank);
}

/// The sum of the losses of rows of logits, and their number where `count` is not absent. Calls then(row, log_sum_exp)
/// behind each row's; without `of_ignored` it may be any number for a row that is ignored.
template <class F>
status sum_losses(std::int32_t threads, const view &sum, const view &count, const view &logits, const view &labels,
                  std::int64_t ignore_index, bool of_ignored, const F &then) {
  const int lead = logits.rank - 1;
  const std::int64_t classes = logits.sizes[lead], stride = cpu::last_stride(logits);
  const sequence of_logits(logits, 0, lead), of_labels(labels, 0, lead);
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
                         const std::int64_t label = labels.as<const std::int64_t>()[of_labels.offset(row)];
                         const bool is_class = label >= 0 && label < classes;
                         const float own = is_class ? x[label * stride] : 0; // `then` may write over it
                         const float total = label == ignore_index && !of_ignored ? 0
                                             : stride == 1 ? cpu::log_sum_exp(x, cpu::unit_stride(), classes)
                                                           : cpu::log_sum_exp(x, stride, classes);
                         then(row, total);
                         if (label == ignore_index)
                           continue;
                         if (!is_class) {
                           wrong[p] = wrong[p] < 0 ? row : wrong[p];
                           continue;
                         }
                         sums[p] += static_cast<double>(total - own);
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
                       " at position " + std::to_string(wrong[p]) + " is outside of the " + std::to_string(classes) +
                       " classes; check the data");
  }
  *sum.as<float>() = static_cast<float>(total);
  if (!count.is_absent())
    *count.as<float>() = static_cast<float>(counted);
  return {};
}

/// The gradients of rows; `to` may be the logits.
struct loss_gradient {
  view to, logits, labels;
  std::int64_t ignore_index;
  sequence of_to{to, 0, to.rank - 1}, of_logits{logits, 0, logits.rank - 1}, of_labels{labels, 0, labels.rank};

  template <class ToStride, class FromStride>
  void write(std::int64_t row, float factor, float log_sum, ToStride to_stride, FromStride from_stride) const {
    const std::int64_t classes = logits.sizes[logits.rank - 1];
    float *d = to.as<float>() + of_to.offset(row);
    const float *x = logits.as<const float>() + of_logits.offset(row);
    const std::int64_t label = labels.as<const std::int64_t>()[of_labels.offset(row)];
    if (label == ignore_index) {
      for (std::int64_t i = 0; i < classes; ++i)
        d[i * to_stride] = 0;
      return;
    }
    WINDLASS_SIMD
    for (std::int64_t i = 0; i < classes; ++i)
      d[i * to_stride] = factor * windlass::scalar::exp(x[i * from_stride] - log_sum);
    if (label >= 0 && label < classes)
      d[label * to_stride] -= factor;
  }

  void operator()(std::int64_t row, float factor, float log_sum) const {
    if (cpu::last_stride(to) == 1 && cpu::last_stride(logits) == 1)
      write(row, factor, log_sum, cpu::unit_stride(), cpu::unit_stride());
    else
      write(row, factor, log_sum, cpu::last_stride(to), cpu::last_stride(logits));
  }
};

} // namespace

status softmax_cross_entropy(stream &s, const view &sum, const view &count, const view &lse, const view &logits,
                             const view &labels, std::int64_t ignore_index) {
  WINDLASS_TRY(
      check(is_f32({sum, count}) && fits_labels(logits, labels) && fits_rows(lse, labels), "softmax_cross_entropy"));
  return s.submit(
      {"softmax_cross_entropy", 0, bytes_of({lse, logits, labels}), {labels.elements(), logits.sizes[logits.rank - 1]}},
      [=, threads = s.threads()]() -> status {
        const sequence of_lse(lse, 0, lse.rank);
        return sum_losses(threads, sum, count, logits, labels, ignore_index, /*of_ignored=*/true,
                          [&](std::int64_t row, float log_sum) { lse.as<float>()[of_lse.offset(row)] = log_sum; });
      });
}

status softmax_cross_entropy_grad(stream &s, const view &dlogits, const view &dsum, const view &logits,
                                  const view &labels, const view &lse, std::int64_t ignore_index) {
  WINDLASS_TRY(check(is_f32({dlogits, dsum}) && fits_labels(logits, labels) && fits_rows(lse, labels) &&
                         dlogits.rank == logits.rank && has_same_rows(dlogits, logits, logits.rank),
                     "softmax_cross_entropy_grad"));
  return s.submit({"softmax_cross_entropy_grad",
                   0,
                   bytes_of({dlogits, logits, labels, lse}),
                   {labels.elements(), logits.sizes[logits.rank - 1]}},
                  [=, threads = s.threads()]() -> status {
                    const loss_gradient gradient{dlogits, logits, labels, ignore_index};
                    const sequence of_lse(lse, 0, lse.rank);
                    const float factor = *dsum.as<const float>();
                    cpu::for_rows(threads, labels.elements(), logits.sizes[logits.rank - 1] * 4, [&](std::int64_t row) {
                      gradient(row, factor, lse.as<const float>()[of_lse.offset(row)]);
                    });
                    return {};
                  });
}

status softmax_cross_entropy_with_grad(stream &s, const view &sum, const view &logits, const view &dsum,
                                       const view &labels, std::int64_t ignore_index) {
  WINDLASS_TRY(check(is_f32({sum, dsum}) && fits_labels(logits, labels), "softmax_cross_entropy_with_grad"));
  return s.submit({"softmax_cross_entropy_with_grad",
                   0,
                   bytes_of({logits, logits, labels}),
                   {labels.elements(), logits.sizes[logits.rank - 1]}},
                  [=, threads = s.threads()]() -> status {
                    const loss_gradient gradient{logits, logits, labels, ignore_index};
                    const float factor = *dsum.as<const float>();
                    return sum_losses(threads, sum, view(), logits, labels, ignore_index, /*of_ignored=*/false,
                                      [&](std::int64_t row, float log_sum) { gradient(row, factor, log_sum); });
                  });
}

status count_labels(stream &s, const view &count, const view &labels, std::int64_t ignore_index) {
  WINDLASS_TRY(check(is_f32({count}) && labels.type == element_type::i64, "count_labels"));
  return s.submit({"count_labels", 0, bytes_of({labels}), {labels.elements()}}, [=]() -> status {
    const sequence of_labels(labels, 0, labels.rank);
    std::int64_t counted = 0;
    for (std::int64_t i = 0; i < of_labels.count(); ++i)
      counted += labels.as<const std::int64_t>()[of_labels.offset(i)] != ignore_index;
    *count.as<float>() = static_cast<float>(counted);
    return {};
  });
}

} // namespace windlass::rt
