// Zeros, as a part of a command that adds to them.
#ifndef WINDLASS_BACKENDS_CPU_CLEAR_H
#define WINDLASS_BACKENDS_CPU_CLEAR_H

#include "windlass/rt/map.h"

#include "windlass/rt/detail/convert.h"

namespace windlass::rt::cpu {

inline void clear(const view &out, std::int32_t threads) {
  detail::map_now(detail::filler<float>{0}, detail::nest_of<1>({&out}), threads);
}

} // namespace windlass::rt::cpu

#endif
