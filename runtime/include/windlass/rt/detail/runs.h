// Runs of evenly spaced elements, and how many of them are worth a thread.
#ifndef WINDLASS_RT_DETAIL_RUNS_H
#define WINDLASS_RT_DETAIL_RUNS_H

#include <cstdint>
#include <type_traits>

namespace windlass::rt::detail {

using unit_stride = std::integral_constant<std::int64_t, 1>;

/// Calls f with the stride as a constant 1 where it is, so that the compiler vectorises that case.
template <class F> void with_stride(std::int64_t stride, F f) {
  if (stride == 1)
    f(unit_stride());
  else
    f(stride);
}

/// The elements of work that are worth a thread of the team.
constexpr std::int64_t grain = 8192;

} // namespace windlass::rt::detail

#endif
