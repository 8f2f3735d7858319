// How products of matrices are computed where a device's library knows several ways.
#ifndef WINDLASS_RT_PRODUCTS_H
#define WINDLASS_RT_PRODUCTS_H

#include "windlass/rt/span.h"

#include <cstdint>

namespace windlass::rt {

/// How a device's library computes a product: numbers that mean something to one version of it only.
struct product_algorithm {
  static constexpr int count = 9;
  std::int32_t numbers[count];
};
struct product_choice {
  const char *product; ///< its types, sizes and strides, in the back end's words
  product_algorithm algorithm;
};
/// What a profile has found to be fastest; it holds for that device with that library.
struct product_choices {
  const char *device, *library; ///< null where there are none
  span<product_choice> choices;
};

} // namespace windlass::rt

#endif
