// Softmax of one row.
#ifndef WINDLASS_BACKENDS_CPU_SOFTMAX_ROW_H
#define WINDLASS_BACKENDS_CPU_SOFTMAX_ROW_H

#include "rows.h"

#include "windlass/rt/scalar.h"

#include <cmath>
#include <limits>

namespace windlass::rt::cpu {

/// The largest element; NaN are passed over, the sums that follow find them.
template <class Stride> float row_max(const float *x, Stride stride, std::int64_t n) {
  float most = -std::numeric_limits<float>::infinity();
#pragma omp simd reduction(max : most)
  for (std::int64_t i = 0; i < n; ++i)
    most = x[i * stride] > most ? x[i * stride] : most;
  return most;
}

/// y = softmax(x); y may be x. A row of -infinity only gives NaN, as in PyTorch.
template <class OutStride, class InStride>
void softmax_row(float *y, OutStride out_stride, const float *x, InStride in_stride, std::int64_t n) {
  const float most = row_max(x, in_stride, n);
  float sum = 0;
#pragma omp simd reduction(+ : sum)
  for (std::int64_t i = 0; i < n; ++i) {
    const float e = windlass::scalar::exp(x[i * in_stride] - most);
    y[i * out_stride] = e;
    sum += e;
  }
  const float factor = 1.0f / sum;
  WINDLASS_SIMD
  for (std::int64_t i = 0; i < n; ++i)
    y[i * out_stride] *= factor;
}

/// e^x for x <= 0 or NaN, from -87 downwards e^-87: windlass::scalar::exp with fewer steps, for sums of which one term
/// is 1.
inline float exp_of_sum(float x) {
  float t = 0;
  const float p = windlass::scalar::detail::exp_of_rest(x < -87.0f ? -87.0f : x, t);
  // 2^n from the low bits of t; above them the shift has none that stay. A NaN makes p one.
  const auto bits = static_cast<std::uint32_t>(windlass::scalar::detail::bits_of(t)) << 23;
  return p * windlass::scalar::detail::float_of(static_cast<std::int32_t>(bits + (127u << 23)));
}

template <class Stride> float log_sum_exp(const float *x, Stride stride, std::int64_t n) {
  const float most = row_max(x, stride, n);
  float sum = 0;
  if (std::fabs(most) >= std::numeric_limits<float>::max()) {
    // Perhaps all are -infinity, and the sum has no term of 1. With an infinity the difference would be NaN where the
    // limit is that infinity.
    const float base = std::isinf(most) ? 0.0f : most;
#pragma omp simd reduction(+ : sum)
    for (std::int64_t i = 0; i < n; ++i)
      sum += windlass::scalar::exp(x[i * stride] - base);
    return base + std::log(sum);
  }
#pragma omp simd reduction(+ : sum)
  for (std::int64_t i = 0; i < n; ++i)
    sum += exp_of_sum(x[i * stride] - most);
  return most + std::log(sum);
}

/// Replaces x by e^(x - base) with a base that keeps the sum in range; returns log(sum) + base. A row of -infinity only
/// (or none) becomes zeros and gives -infinity.
inline float exp_row(float *x, std::int64_t n, float &sum) {
  const float most = row_max(x, unit_stride(), n);
  const float base = std::isinf(most) ? 0.0f : most;
  float total = 0;
#pragma omp simd reduction(+ : total)
  for (std::int64_t i = 0; i < n; ++i) {
    x[i] = windlass::scalar::exp(x[i] - base);
    total += x[i];
  }
  sum = total;
  return base + std::log(total);
}

} // namespace windlass::rt::cpu

#endif
