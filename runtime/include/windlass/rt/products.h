// The algorithms of matrix products, for devices whose library has several.
#ifndef WINDLASS_RT_PRODUCTS_H
#define WINDLASS_RT_PRODUCTS_H

#include "windlass/rt/span.h"

#include <cstdint>

namespace windlass::rt {

/// An algorithm of a device's library for a product: numbers that mean something to one version of it only.
struct product_algorithm {
  static constexpr int count = 9;
  std::int32_t numbers[count];
};
struct product_choice {
  const char *product; ///< the product's types, sizes and strides, in the back end's words
  product_algorithm algorithm;
};
/// The algorithms that a profile found fastest; they hold for that device with that library.
struct product_choices {
  const char *device, *library; ///< null where there are no choices
  span<product_choice> choices;
};

} // namespace windlass::rt

#endif
