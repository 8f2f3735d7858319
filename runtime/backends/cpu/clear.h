// Zeros, as a part of a command that adds to them.
#ifndef WINDLASS_BACKENDS_CPU_CLEAR_H
#define WINDLASS_BACKENDS_CPU_CLEAR_H

#include "windlass/rt/map.h"

#include "windlass/rt/detail/convert.h"
#include "windlass/rt/detail/window_plan.h"

namespace windlass::rt::cpu {

inline void clear(const view &out, std::int32_t threads) {
  detail::map_now(detail::filler<float>{0}, detail::nest_of<1>({&out}), threads);
}

/// Clears a plane of the input's gradient, which begins at `plane`.
inline void clear_plane(const detail::window_plan &plan, float *plane) {
  const std::int64_t width = plan.axes[2].in, step = plan.x.spatial[2];
  for (std::int64_t line = 0; line < plan.in_plane(); line += width) {
    float *to = plane + plan.x_offset(line);
    for (std::int64_t i = 0; i < width; ++i)
      to[i * step] = 0;
  }
}

} // namespace windlass::rt::cpu

#endif
