// The compute team: the threads that one kernel divides its work among.
#ifndef WINDLASS_RT_DETAIL_TEAM_H
#define WINDLASS_RT_DETAIL_TEAM_H

#include "windlass/rt/detail/instructions.h"

#include <algorithm>
#include <cstdint>

#if defined(_OPENMP)
#include <omp.h>
#endif

/// Marks a loop whose iterations may run side by side in vector lanes.
#define WINDLASS_SIMD _Pragma("omp simd")

namespace windlass::rt::detail {

#if defined(__x86_64__) && !defined(__AVX512F__) && !defined(__CUDACC__)
#define WINDLASS_HAS_VERSIONS

/// Calls f, compiled for AVX-512 with all that is inlined into it.
template <class F>
__attribute__((target("arch=x86-64-v4"), flatten)) void call_avx512(const F &f, std::int64_t begin, std::int64_t end,
                                                                    std::int32_t part) {
  f(begin, end, part);
}
#endif

/// Calls f in its version for the instructions that this process uses.
template <class F> void call_version(const F &f, std::int64_t begin, std::int64_t end, std::int32_t part) {
#if defined(WINDLASS_HAS_VERSIONS)
  if (uses_avx512())
    return call_avx512(f, begin, end, part);
#endif
  f(begin, end, part);
}

/// Calls f(begin, end, part) for `parts` even parts of [0, items); the parts depend on the numbers given only, so that
/// a run with the same number of threads divides, adds and rounds alike.
template <class F> void for_parts(std::int64_t items, std::int32_t parts, F f) {
  const auto begin_of = [items, parts](std::int64_t part) {
    return items / parts * part + std::min<std::int64_t>(part, items % parts);
  };
#if defined(_OPENMP)
  if (parts > 1) {
    // The whole team runs, though some threads may find no part: GCC's library ends the threads that a smaller team
    // leaves out and starts new ones for the next larger one.
#pragma omp parallel for schedule(static, 1)
    for (std::int32_t part = 0; part < parts; ++part)
      call_version(f, begin_of(part), begin_of(part + 1), part);
    return;
  }
#endif
  for (std::int32_t part = 0; part < parts; ++part)
    call_version(f, begin_of(part), begin_of(part + 1), part);
}

/// Returns the number of parts for `items` where one thread should get at least `grain` items.
inline std::int32_t part_count(std::int64_t items, std::int64_t grain, std::int32_t threads) {
  return static_cast<std::int32_t>(
      std::clamp<std::int64_t>(items / std::max<std::int64_t>(grain, 1), 1, std::max(threads, 1)));
}

/// Calls for_parts with as many threads as the work is worth.
template <class F> void parallel(std::int32_t threads, std::int64_t items, std::int64_t grain, F f) {
  for_parts(items, part_count(items, grain, threads), f);
}

/// Makes this thread treat numbers below the normal range as zero, in operands and results.
void flush_denormals();
/// Does the same for every thread of the team that the calling thread leads; also tells libraries the team's size.
void prepare_team(std::int32_t threads);

} // namespace windlass::rt::detail

#endif
