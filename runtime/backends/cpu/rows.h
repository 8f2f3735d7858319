// Walking over the rows of strided views.
#ifndef WINDLASS_BACKENDS_CPU_ROWS_H
#define WINDLASS_BACKENDS_CPU_ROWS_H

#include "windlass/rt/detail/runs.h"
#include "windlass/rt/detail/sequence.h"
#include "windlass/rt/detail/team.h"
#include "windlass/rt/view.h"

namespace windlass::rt::cpu {

using detail::grain;
using detail::sequence;
using detail::unit_stride;
using detail::with_stride;

inline std::int64_t last_stride(const view &v) {
  return v.rank == 0 || v.sizes[v.rank - 1] == 1 ? 1 : v.strides[v.rank - 1];
}

/// Calls f(row) for each of `rows` rows of `width` elements, divided among the team.
template <class F> void for_rows(std::int32_t threads, std::int64_t rows, std::int64_t width, F f) {
  detail::parallel(threads, rows, grain / (width + 1) + 1, [&](std::int64_t begin, std::int64_t end, std::int32_t) {
    for (std::int64_t row = begin; row < end; ++row)
      f(row);
  });
}

} // namespace windlass::rt::cpu

#endif
