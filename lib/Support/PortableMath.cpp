#include "windlass/Support/PortableMath.h"

#include <algorithm>
#include <cmath>

namespace {

constexpr double kLn2 = 0.693147180559945309417232121458;
constexpr double kSqrtHalf = 0.707106781186547524400844362105;

} // namespace

double windlass::portableLog2(double value) {
  // value = fraction * 2^exponent with the fraction within sqrt(1/2) and sqrt(2).
  int exponent = 0;
  double fraction = std::frexp(value, &exponent);
  if (fraction < kSqrtHalf) {
    fraction *= 2;
    --exponent;
  }
  // ln f = 2 (z + z^3 / 3 + z^5 / 5 + ...) with z = (f - 1) / (f + 1), which is at most 0.172: the first term that is
  // left out is below 2^-58.
  double z = (fraction - 1) / (fraction + 1), square = z * z, sum = 0;
  for (int k = 21; k >= 1; k -= 2)
    sum = sum * square + 1.0 / k;
  return exponent + 2 * z * sum / kLn2;
}

double windlass::portableExp2(double value) {
  // Beyond this range the result is 0 or infinity.
  double clamped = std::clamp(value, -1100.0, 1100.0);
  double whole = std::floor(clamped + 0.5);
  // e^x = 1 + x (1 + x / 2 (1 + x / 3 ...)), where |x| is at most 0.347: the first term that is left out is below
  // 2^-62.
  double x = (clamped - whole) * kLn2, sum = 1;
  for (int k = 14; k >= 1; --k)
    sum = 1 + sum * x / k;
  return std::ldexp(sum, static_cast<int>(whole));
}
