// Sums of squares on the host's threads.
#ifndef WINDLASS_RT_DETAIL_HOST_SQUARES_H
#define WINDLASS_RT_DETAIL_HOST_SQUARES_H

#include "windlass/rt/kernels.h"

namespace windlass::rt::detail {

// These do what the functions of the same names in kernels.h do; all views are in host memory.
status square_sum_on_host(stream &s, const view &out, const view &in, bool accumulate);
status square_sum_list_on_host(stream &s, const view &out, const squared_gradients &gradients, bool accumulate);

} // namespace windlass::rt::detail

#endif
