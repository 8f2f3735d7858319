// Logarithms and powers that are the same bits on every machine: C libraries differ in the last ones.
#ifndef WINDLASS_SUPPORT_PORTABLEMATH_H
#define WINDLASS_SUPPORT_PORTABLEMATH_H

namespace windlass {

/// Returns the base-2 logarithm of a finite number above 0, with an error of a few units in the last place of the
/// larger of the result and 1. Uses nothing but sums, products, quotients and exponents of doubles.
double portableLog2(double value);

/// Returns 2 to the power of a finite number, with a relative error of a few units in the last place; 0 or infinity
/// where that is out of range.
double portableExp2(double value);

} // namespace windlass

#endif
