#include "windlass/rt/detail/team.h"

#if defined(__SSE2__)
#include <immintrin.h>
#endif

namespace windlass::rt::detail {

void flush_denormals() {
#if defined(__SSE2__)
  _mm_setcsr(_mm_getcsr() | 0x8040u); // flush to zero, denormals are zero
#elif defined(__aarch64__)
  std::uint64_t control;
  asm volatile("mrs %0, fpcr" : "=r"(control));
  asm volatile("msr fpcr, %0" : : "r"(control | (std::uint64_t(1) << 24)));
#endif
}

void prepare_team(std::int32_t threads) {
#if defined(_OPENMP)
  omp_set_dynamic(0);
  omp_set_num_threads(threads);
#endif
  flush_denormals();
  for_parts(threads, threads, [](std::int64_t, std::int64_t, std::int32_t) { flush_denormals(); });
}

} // namespace windlass::rt::detail
