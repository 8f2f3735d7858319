// The one definition of every element-wise function: interpreter, host kernels, fused functions and device code use it.
//
// Functions over float are written so that a compiler can vectorise loops over them: no calls, no branches, no tables.
// Their accuracy against the exact value, for results that are normal numbers: exp 1.5 ulp, tanh 2 ulp, erf 2 ulp,
// sigmoid 2.5 ulp; infinities and NaN behave as in the C library. Devices have their own exp and a quotient that may be
// 2 ulp off. The others over float (log, pow, trigonometric and hyperbolic functions) and all over double are the C
// library's. Comparisons and tests give bool.
//
// The namespace is windlass::scalar, so that it does not meet the type windlass::rt::scalar: spell it in full in code
// that lives in windlass::rt.
#ifndef WINDLASS_RT_SCALAR_H
#define WINDLASS_RT_SCALAR_H

#include "windlass/rt/detail/function.h"

#include <cmath>
#include <cstdint>
#include <cstring>

namespace windlass::scalar {

namespace detail {

WINDLASS_FN std::int32_t bits_of(float x) {
  std::int32_t bits;
  std::memcpy(&bits, &x, sizeof(bits));
  return bits;
}

WINDLASS_FN float float_of(std::int32_t bits) {
  float x;
  std::memcpy(&x, &bits, sizeof(x));
  return x;
}

} // namespace detail

// Arithmetic.

template <class T> WINDLASS_FN T add(T a, T b) { return a + b; }
template <class T> WINDLASS_FN T sub(T a, T b) { return a - b; }
template <class T> WINDLASS_FN T mul(T a, T b) { return a * b; }
template <class T> WINDLASS_FN T div(T a, T b) { return a / b; }
template <class T> WINDLASS_FN T neg(T a) { return -a; }
template <class T> WINDLASS_FN T reciprocal(T a) { return T(1) / a; }
/// Returns the larger operand, or NaN when either operand is NaN.
template <class T> WINDLASS_FN T max(T a, T b) { return ((a > b) | (a != a)) ? a : b; }
template <class T> WINDLASS_FN T min(T a, T b) { return ((a < b) | (a != a)) ? a : b; }
WINDLASS_FN float abs(float a) { return std::fabs(a); }
WINDLASS_FN double abs(double a) { return std::fabs(a); }
WINDLASS_FN float pow(float a, float b) { return std::pow(a, b); }
WINDLASS_FN double pow(double a, double b) { return std::pow(a, b); }
WINDLASS_FN float sqrt(float a) { return std::sqrt(a); }
WINDLASS_FN double sqrt(double a) { return std::sqrt(a); }
template <class T> WINDLASS_FN T rsqrt(T a) { return T(1) / sqrt(a); }

// Comparisons and logic.

template <class T> WINDLASS_FN bool equal(T a, T b) { return a == b; }
template <class T> WINDLASS_FN bool not_equal(T a, T b) { return a != b; }
template <class T> WINDLASS_FN bool less(T a, T b) { return a < b; }
template <class T> WINDLASS_FN bool less_equal(T a, T b) { return a <= b; }
template <class T> WINDLASS_FN bool greater(T a, T b) { return a > b; }
template <class T> WINDLASS_FN bool greater_equal(T a, T b) { return a >= b; }
template <class T> WINDLASS_FN bool is_nan(T a) { return a != a; }
WINDLASS_FN bool logical_not(bool a) { return !a; }
WINDLASS_FN bool logical_and(bool a, bool b) { return a & b; }
WINDLASS_FN bool logical_or(bool a, bool b) { return a | b; }
template <class T> WINDLASS_FN T select(bool condition, T a, T b) { return condition ? a : b; }

// Transcendental functions.

namespace detail {
constexpr float kExpShift = 12582912.0f; // 1.5 * 2^23: adding it rounds to an integer that sits in the low bits

/// Returns e^r for x = n ln 2 + r with |r| <= ln 2 / 2, by a minimax polynomial in r (error 3e-9); n is in the low bits
/// of `shifted`.
WINDLASS_FN float exp_of_rest(float x, float &shifted) {
  shifted = x * 1.44269504f + kExpShift;
  const float n = shifted - kExpShift;
  const float r = (x - n * 0.693359375f) + n * 2.12194440e-4f;
  float p = 0.001381432225f;
  p = p * r + 0.008368851088f;
  p = p * r + 0.04166840105f;
  p = p * r + 0.1666651952f;
  p = p * r + 0.4999999337f;
  return (p * r) * r + r + 1.0f;
}
} // namespace detail

/// Returns e^x, with 2^n as two factors, so that results below the normal range and above the largest float come out
/// right. Devices have an instruction for 2^x, on which CUDA's own function stands.
WINDLASS_FN float exp(float x) {
#if defined(__CUDA_ARCH__)
  return expf(x);
#else
  float c = x < -104.0f ? -104.0f : x;
  c = c > 89.0f ? 89.0f : c;
  float t = 0;
  const float p = detail::exp_of_rest(c, t);
  // A NaN leaves arbitrary bits here; they are masked so that the shifts below stay defined. p is NaN then.
  const std::int32_t e = ((detail::bits_of(t) - detail::bits_of(detail::kExpShift) + 256) & 511) - 256;
  const std::int32_t half = e >> 1;
  return p * detail::float_of((half + 127) << 23) * detail::float_of((e - half + 127) << 23);
#endif
}
WINDLASS_FN double exp(double x) { return std::exp(x); }

WINDLASS_FN float log(float x) { return std::log(x); }
WINDLASS_FN double log(double x) { return std::log(x); }
WINDLASS_FN float sin(float x) { return std::sin(x); }
WINDLASS_FN double sin(double x) { return std::sin(x); }
WINDLASS_FN float cos(float x) { return std::cos(x); }
WINDLASS_FN double cos(double x) { return std::cos(x); }
WINDLASS_FN float tan(float x) { return std::tan(x); }
WINDLASS_FN double tan(double x) { return std::tan(x); }
WINDLASS_FN float asin(float x) { return std::asin(x); }
WINDLASS_FN double asin(double x) { return std::asin(x); }
WINDLASS_FN float acos(float x) { return std::acos(x); }
WINDLASS_FN double acos(double x) { return std::acos(x); }
WINDLASS_FN float atan(float x) { return std::atan(x); }
WINDLASS_FN double atan(double x) { return std::atan(x); }
WINDLASS_FN float sinh(float x) { return std::sinh(x); }
WINDLASS_FN double sinh(double x) { return std::sinh(x); }
WINDLASS_FN float cosh(float x) { return std::cosh(x); }
WINDLASS_FN double cosh(double x) { return std::cosh(x); }
WINDLASS_FN float asinh(float x) { return std::asinh(x); }
WINDLASS_FN double asinh(double x) { return std::asinh(x); }
WINDLASS_FN float acosh(float x) { return std::acosh(x); }
WINDLASS_FN double acosh(double x) { return std::acosh(x); }
WINDLASS_FN float atanh(float x) { return std::atanh(x); }
WINDLASS_FN double atanh(double x) { return std::atanh(x); }
WINDLASS_FN float floor(float x) { return std::floor(x); }
WINDLASS_FN double floor(double x) { return std::floor(x); }
WINDLASS_FN float ceil(float x) { return std::ceil(x); }
WINDLASS_FN double ceil(double x) { return std::ceil(x); }
/// Returns the nearest integer, and of two that are equally near the even one.
WINDLASS_FN float round(float x) { return std::rint(x); }
WINDLASS_FN double round(double x) { return std::rint(x); }
/// Returns -1, 0 or 1, or x where it is NaN.
template <class T> WINDLASS_FN T sign(T x) { return x > 0 ? T(1) : x < 0 ? T(-1) : x; }

/// Returns tanh(x): below 0.625 an odd polynomial (error 5e-9), above it 1 - 2 / (e^2|x| + 1).
WINDLASS_FN float tanh(float x) {
  const float a = std::fabs(x);
  const float u = x * x;
  float p = -0.005666972444f;
  p = p * u + 0.02060617198f;
  p = p * u - 0.05373000552f;
  p = p * u + 0.1333133098f;
  p = p * u - 0.3333327806f;
  const float near = x + (x * u) * p;
  const float magnitude = 1.0f - 2.0f / (exp(a + a) + 1.0f);
  const float far = x < 0.0f ? -magnitude : magnitude;
  return a < 0.625f ? near : far;
}
WINDLASS_FN double tanh(double x) { return std::tanh(x); }

/// Returns erf(x): up to 1 an odd polynomial (error 2e-9), above it 1 - e^q(|x|), where q approximates log erfc on [1,
/// 4] (error 2e-9 of erf); from 4 on erf rounds to 1.
WINDLASS_FN float erf(float x) {
  const float u = x * x;
  float p = 7.853859946e-5f;
  p = p * u - 0.0008010193278f;
  p = p * u + 0.005188327658f;
  p = p * u - 0.02685381193f;
  p = p * u + 0.1128358515f;
  p = p * u - 0.3761262582f;
  p = p * u + 0.1283791661f;
  const float near = x + x * p;
  const float m = std::fabs(x);
  const float a = m > 4.0f ? 4.0f : m;
  float q = 0.0001876043649f;
  q = q * a - 0.002960110218f;
  q = q * a + 0.02188962758f;
  q = q * a - 0.103218174f;
  q = q * a - 0.6380122471f;
  q = q * a - 1.127171633f;
  q = q * a - 0.0003205779791f;
  const float magnitude = 1.0f - exp(q);
  const float far = x < 0.0f ? -magnitude : magnitude;
  return m < 1.0f ? near : far;
}
WINDLASS_FN double erf(double x) { return std::erf(x); }

namespace detail {
/// Returns a / b for a b of at least 1, also infinity. A device's instruction for reciprocals takes a third of what an
/// exact division takes, and gives 0 for a b above 2^126.
template <class T> WINDLASS_FN T quotient(T a, T b) { return a / b; }
#if defined(__CUDA_ARCH__)
template <> WINDLASS_FN float quotient(float a, float b) { return __fdividef(a, b); }
#endif
} // namespace detail

// Activations and their gradients. `x` is the function's argument, `y` its result, `dy` the gradient that arrives.

template <class T> WINDLASS_FN T sigmoid(T x) { return detail::quotient(T(1), T(1) + exp(-x)); }
template <class T> WINDLASS_FN T sigmoid_grad(T y, T dy) { return dy * (y * (T(1) - y)); }
template <class T> WINDLASS_FN T tanh_grad(T y, T dy) { return dy * (T(1) - y * y); }

/// Returns max(x, 0); NaN stays NaN.
template <class T> WINDLASS_FN T relu(T x) { return x <= T(0) ? T(0) : x; }
template <class T> WINDLASS_FN T relu_grad(T x, T dy) { return x <= T(0) ? T(0) : dy; }

template <class T> WINDLASS_FN T silu(T x) { return detail::quotient(x, T(1) + exp(-x)); }
template <class T> WINDLASS_FN T silu_grad(T x, T dy) {
  const T s = sigmoid(x);
  return dy * (s * (T(1) + x * (T(1) - s)));
}

/// Returns x Phi(x) with the normal distribution's Phi.
template <class T> WINDLASS_FN T gelu_erf(T x) { return T(0.5) * x * (T(1) + erf(x * T(0.70710678118654752440))); }
template <class T> WINDLASS_FN T gelu_erf_grad(T x, T dy) {
  const T cdf = T(0.5) * (T(1) + erf(x * T(0.70710678118654752440)));
  const T pdf = T(0.39894228040143267794) * exp(T(-0.5) * x * x);
  return dy * (cdf + x * pdf);
}

/// The tanh approximation of GELU: 0.5 x (1 + tanh(u)) with u = sqrt(2/pi) (x + 0.044715 x^3). That is x sigmoid(2u):
/// one exponential and one division, and no cancellation where x is negative.
template <class T> WINDLASS_FN T gelu_tanh(T x) {
  return detail::quotient(x, T(1) + exp(T(-1.59576912160573071176) * (x + T(0.044715) * x * x * x)));
}
/// With e = exp(-2u) and s = 1 / (1 + e), 1 - s is e s, which does not cancel; the bound keeps it from inf * 0.
template <class T> WINDLASS_FN T gelu_tanh_grad(T x, T dy) {
  const T e = exp(T(-1.59576912160573071176) * (x + T(0.044715) * x * x * x));
  const T slope = T(1.59576912160573071176) * (T(1) + T(0.134145) * x * x);
  const T s = detail::quotient(T(1), T(1) + e);
  return dy * (s + x * (s * (s * (e > T(1e30) ? T(1e30) : e))) * slope);
}

} // namespace windlass::scalar

#endif
