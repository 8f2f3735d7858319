#include "windlass/Support/PortableMath.h"

#include "gtest/gtest.h"

#include <cmath>
#include <limits>

using namespace windlass;

namespace {

constexpr double kUnit = std::numeric_limits<double>::epsilon();

TEST(PortableMathTest, LogarithmsAreNearThoseOfTheLibrary) {
  for (double value = 1e-300; value < 1e300; value *= 1.37) {
    double wanted = std::log2(value);
    EXPECT_NEAR(portableLog2(value), wanted, 4 * kUnit * std::max(1.0, std::abs(wanted))) << value;
  }
  for (double value = 0.5; value < 2; value += 1.0 / 4096)
    EXPECT_NEAR(portableLog2(value), std::log2(value), 4 * kUnit) << value;
}

TEST(PortableMathTest, PowersAreNearThoseOfTheLibrary) {
  for (double value = -1000; value < 1000; value += 0.37) {
    double wanted = std::exp2(value);
    EXPECT_NEAR(portableExp2(value), wanted, 4 * kUnit * wanted) << value;
  }
}

TEST(PortableMathTest, WholeExponentsAreExact) {
  for (int exponent = -1000; exponent <= 1000; ++exponent) {
    EXPECT_EQ(portableExp2(exponent), std::ldexp(1, exponent));
    EXPECT_EQ(portableLog2(std::ldexp(1, exponent)), exponent);
  }
  EXPECT_EQ(portableExp2(5000), std::numeric_limits<double>::infinity());
  EXPECT_EQ(portableExp2(-5000), 0);
}

/// The bits are those of every machine: a library's own functions may differ from these.
TEST(PortableMathTest, BitsAreFixed) {
  EXPECT_EQ(portableLog2(10), 0x1.a934f0979a371p+1);
  EXPECT_EQ(portableExp2(0.3), 0x1.3b2c47bff8329p+0);
}

} // namespace
