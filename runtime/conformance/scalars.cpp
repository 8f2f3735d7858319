#include "windlass/rt/scalar.h"

#include <gtest/gtest.h>

#include <limits>

namespace windlass::scalar {
namespace {

constexpr float infinity = std::numeric_limits<float>::infinity();

/// Largest error in units of the last place of the result over floats of all magnitudes, where the result is normal.
template <class F, class G> double worst_ulp(F f, G exact) {
  double worst = 0;
  for (std::uint64_t bits = 0; bits < 0x100000000u; bits += 2503) {
    const float x = detail::float_of(static_cast<std::int32_t>(static_cast<std::uint32_t>(bits)));
    const double e = exact(static_cast<double>(x));
    const auto rounded = static_cast<float>(e);
    if (std::isnan(x) || !std::isnormal(rounded))
      continue;
    const float magnitude = std::fabs(rounded);
    const double unit = static_cast<double>(std::nextafter(magnitude, infinity)) - static_cast<double>(magnitude);
    worst = std::max(worst, std::fabs(static_cast<double>(f(x)) - e) / unit);
  }
  return worst;
}

TEST(Scalar, AccuracyOfExp) {
  EXPECT_LT(worst_ulp([](float x) { return exp(x); }, [](double x) { return std::exp(x); }), 1.5);
}
TEST(Scalar, AccuracyOfTanh) {
  EXPECT_LT(worst_ulp([](float x) { return tanh(x); }, [](double x) { return std::tanh(x); }), 2);
}
TEST(Scalar, AccuracyOfErf) {
  EXPECT_LT(worst_ulp([](float x) { return erf(x); }, [](double x) { return std::erf(x); }), 2);
}
TEST(Scalar, AccuracyOfSigmoid) {
  EXPECT_LT(worst_ulp([](float x) { return sigmoid(x); }, [](double x) { return 1 / (1 + std::exp(-x)); }), 2.5);
}

TEST(Scalar, SpecialValues) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  EXPECT_EQ(exp(infinity), infinity);
  EXPECT_EQ(exp(-infinity), 0.0f);
  EXPECT_EQ(exp(0.0f), 1.0f);
  EXPECT_EQ(exp(89.0f), infinity);
  EXPECT_EQ(tanh(infinity), 1.0f);
  EXPECT_EQ(tanh(-infinity), -1.0f);
  EXPECT_EQ(erf(infinity), 1.0f);
  EXPECT_EQ(erf(-infinity), -1.0f);
  EXPECT_EQ(sigmoid(infinity), 1.0f);
  EXPECT_EQ(sigmoid(-infinity), 0.0f);
  for (const float r : {exp(nan), tanh(nan), erf(nan), sigmoid(nan), relu(nan), max(nan, 1.0f), max(1.0f, nan),
                        min(nan, 1.0f), min(1.0f, nan), gelu_erf(nan), gelu_tanh(nan), silu(nan)})
    EXPECT_TRUE(std::isnan(r));
  EXPECT_TRUE(is_nan(nan) && !is_nan(infinity));
  EXPECT_EQ(max(1.0f, 2.0f), 2.0f);
  EXPECT_EQ(min(1.0f, 2.0f), 1.0f);
  EXPECT_EQ(relu(-1.0f), 0.0f);
  EXPECT_EQ(relu_grad(0.0f, 5.0f), 0.0f);
}

/// The gradient against central differences in double, and the float version against the double one.
template <class F, class D, class FF> void expect_gradient(F f, D grad, FF float_grad) {
  for (double x = -6; x <= 6; x += 0.037) {
    const double h = 1e-5, slope = (f(x + h) - f(x - h)) / (2 * h);
    EXPECT_NEAR(grad(x, 2.0), 2 * slope, 1e-8) << x;
    EXPECT_NEAR(static_cast<double>(float_grad(static_cast<float>(x), 2.0f)),
                grad(static_cast<double>(static_cast<float>(x)), 2.0), 2e-6)
        << x;
  }
}
#define WINDLASS_GRADIENT_TEST(name, function, gradient)                                                               \
  TEST(Scalar, name) {                                                                                                 \
    expect_gradient([](double x) { return function(x); }, [](double x, double dy) { return gradient; },                \
                    [](float x, float dy) { return gradient; });                                                       \
  }
WINDLASS_GRADIENT_TEST(GradientOfGeluErf, gelu_erf, gelu_erf_grad(x, dy))
WINDLASS_GRADIENT_TEST(GradientOfGeluTanh, gelu_tanh, gelu_tanh_grad(x, dy))
WINDLASS_GRADIENT_TEST(GradientOfSilu, silu, silu_grad(x, dy))
WINDLASS_GRADIENT_TEST(GradientOfSigmoid, sigmoid, sigmoid_grad(sigmoid(x), dy))
WINDLASS_GRADIENT_TEST(GradientOfTanh, tanh, tanh_grad(tanh(x), dy))

} // namespace
} // namespace windlass::scalar
