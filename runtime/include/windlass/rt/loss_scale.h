// Dynamic loss scaling: the factor on the loss of an f16 program that keeps small gradients above zero (Micikevicius et
// al., arXiv:1710.03740). The emitted program and the interpreter share it.
#ifndef WINDLASS_RT_LOSS_SCALE_H
#define WINDLASS_RT_LOSS_SCALE_H

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace windlass::rt {

/// Returns whether `x` can be a loss scale: a power of two, whose inverse is exact.
inline bool is_loss_scale(double x) {
  int exponent = 0;
  return x > 0 && std::isfinite(x) && std::frexp(x, &exponent) == 0.5 && exponent > -100 && exponent < 100;
}

struct loss_scale_settings {
  double initial = 65536;
  std::int64_t window = 1000;  ///< consecutive updates after which the scale doubles
  std::int64_t hysteresis = 2; ///< since the scale last doubled, this overflow and each later one halve it
  double floor = 1;
};

struct loss_scale {
  double value = 1;
  std::int64_t clean_steps = 0; ///< updates since the last overflow, or since the scale doubled
  std::int64_t overflows = 0;   ///< since the scale last doubled

  static loss_scale start(const loss_scale_settings &settings) { return {settings.initial, 0, 0}; }

  /// Updates the scale after a step whose gradient is finite, or has overflowed. Returns false where the scale had to
  /// fall below its floor.
  bool advance(bool is_finite, const loss_scale_settings &settings) {
    constexpr double largest = 4294967296.0; // gradients that are all zero must not double it for ever
    if (is_finite) {
      if (++clean_steps >= settings.window) {
        value = std::max(value, std::min(2 * value, largest));
        clean_steps = overflows = 0;
      }
      return true;
    }
    clean_steps = 0;
    if (++overflows < settings.hysteresis)
      return true;
    if (value / 2 < settings.floor)
      return false;
    value /= 2;
    return true;
  }
};

} // namespace windlass::rt

#endif
