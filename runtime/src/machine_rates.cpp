#include "windlass/rt/detail/machine_rates.h"

#include "windlass/rt/detail/team.h"
#include "windlass/rt/kernel_times.h"

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <sys/mman.h>

namespace windlass::rt::detail {

namespace {

#if defined(__x86_64__)
#define WINDLASS_AVX512 __attribute__((target("avx512f")))
#else
#define WINDLASS_AVX512
#endif
#if defined(__AVX__)
constexpr int baseline_lanes = 8;
#else
constexpr int baseline_lanes = 4;
#endif
#if defined(__x86_64__)
constexpr int avx512_lanes = 16;
#else
constexpr int avx512_lanes = baseline_lanes; // never used
#endif

template <int lanes> struct vector_of {
  typedef float type __attribute__((vector_size(lanes * 4)));
};

// Inlined, for the instructions of the caller.
#define WINDLASS_INLINE inline __attribute__((always_inline))

/// Keeps the compiler from computing a chain beforehand, while its value stays in a register.
template <class vector> WINDLASS_INLINE void keep(vector &value) {
#if defined(__x86_64__)
  asm volatile("" : "+v"(value));
#else
  asm volatile("" : "+w"(value));
#endif
}

// Enough independent chains to fill the pipelines.
constexpr int chains = 12;
constexpr std::int64_t rounds = 1'000'000;

template <int lanes, bool loads> WINDLASS_INLINE void multiply_adds() {
  using vector = typename vector_of<lanes>::type;
  const vector zero = {}, half = zero + 0.5f, y = zero + 0.25f;
  const vector memory[] = {half, half, half, half, half, half};
  const vector *values = memory;
  vector x0 = half, x1 = half, x2 = half, x3 = half, x4 = half, x5 = half;
  // Variables and not an array, which the compiler would leave in memory.
  vector a = zero, b = zero, c = zero, d = zero, e = zero, f = zero, g = zero, h = zero, i = zero, j = zero, k = zero,
         l = zero;
  for (std::int64_t r = 0; r < rounds; ++r) {
    if (loads) {
      // The compiler may not know that the values are still the same.
      asm volatile("" : "+r"(values) : : "memory");
      x0 = values[0], x1 = values[1], x2 = values[2], x3 = values[3], x4 = values[4], x5 = values[5];
    }
    a = a * x0 + y, b = b * x0 + y, c = c * x1 + y, d = d * x1 + y, e = e * x2 + y, f = f * x2 + y;
    g = g * x3 + y, h = h * x3 + y, i = i * x4 + y, j = j * x4 + y, k = k * x5 + y, l = l * x5 + y;
    keep(a), keep(b), keep(c), keep(d), keep(e), keep(f), keep(g), keep(h), keep(i), keep(j), keep(k), keep(l);
  }
}

template <bool loads> void multiply_adds_baseline() { multiply_adds<baseline_lanes, loads>(); }
template <bool loads> WINDLASS_AVX512 void multiply_adds_avx512() { multiply_adds<avx512_lanes, loads>(); }

} // namespace

double multiply_add_rate(std::int32_t threads, bool loads, int turns) {
  const auto run = uses_avx512() ? (loads ? multiply_adds_avx512<true> : multiply_adds_avx512<false>)
                                 : (loads ? multiply_adds_baseline<true> : multiply_adds_baseline<false>);
  const int lanes = uses_avx512() ? avx512_lanes : baseline_lanes;
  double best = 0;
  for (int turn = 0; turn < turns; ++turn) {
    const double start = clock_seconds();
    for_parts(threads, threads, [run](std::int64_t, std::int64_t, std::int32_t) { run(); });
    const double flops = 2.0 * lanes * chains * rounds * threads;
    best = std::max(best, flops / (clock_seconds() - start));
  }
  return best;
}

double memory_rate(std::int32_t threads, int turns) {
  // Huge pages, as arenas have. Arrays a multiple of 4 KiB apart would take each other's places in caches and buffers.
  constexpr std::int64_t n = std::int64_t(1) << 24, apart = n + 5 * 16, page = 2 << 20;
  constexpr std::size_t bytes = (3 * apart * 4 + page - 1) / page * page;
  const std::unique_ptr<float, decltype(&std::free)> memory(static_cast<float *>(std::aligned_alloc(page, bytes)),
                                                            &std::free);
  if (memory == nullptr)
    return 0;
#if defined(MADV_HUGEPAGE)
  madvise(memory.get(), bytes, MADV_HUGEPAGE);
#endif
  float *const a = memory.get(), *const b = a + apart, *const c = b + apart;
  double best = 0;
  for (int turn = 0; turn <= turns; ++turn) { // the first touches the pages
    const double start = clock_seconds();
    for_parts(n, threads, [=](std::int64_t begin, std::int64_t end, std::int32_t) {
      if (turn == 0) {
        for (float *const each : {a, b, c})
          std::fill(each + begin, each + end, 1.0f);
        return;
      }
      // Copies: through the closure the pointers would be loaded for every lane, and the values gathered.
      const float *const x = a, *const y = b;
      float *const sums = c;
      WINDLASS_SIMD
      for (std::int64_t i = begin; i < end; ++i)
        sums[i] = x[i] + y[i];
    });
    if (turn > 0)
      best = std::max(best, 12.0 * static_cast<double>(n) / (clock_seconds() - start));
  }
  return best;
}

} // namespace windlass::rt::detail
