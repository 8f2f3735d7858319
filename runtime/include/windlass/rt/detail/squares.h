// The work of a sum of squares, the same for every back end.
#ifndef WINDLASS_RT_DETAIL_SQUARES_H
#define WINDLASS_RT_DETAIL_SQUARES_H

#include "windlass/rt/kernels.h"

namespace windlass::rt::detail {

/// Returns the work of one command that sums the squares of all of the gradients.
inline work work_of(const squared_gradients &gradients) {
  work what;
  what.name = "square_sum";
  for (std::int32_t i = 0; i < gradients.count; ++i)
    what.sizes[0] += gradients.of[i].elements;
  what.bytes = what.sizes[0] * size_of(gradients.type);
  return what;
}

} // namespace windlass::rt::detail

#endif
