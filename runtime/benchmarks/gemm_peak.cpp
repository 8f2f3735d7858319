// How much of the processor's multiply-add rate matmul reaches.
//
// usage: windlass_gemm_peak [SIZE [THREADS]]
//
// Measures in turns, and prints the best of each:
//   - the rate of fused multiply-adds whose operands stay in registers;
//   - the same with one load from the L1 cache to two multiply-adds, the least that a matrix product with 32 vector
//     registers needs. Processors that lower their clock with the power a program draws run this one slower;
//   - matmul of SIZE^3 (default 1024) through the runtime's API;
//   - OpenBLAS on one thread, the rival, where it is installed.
#include "gemm.h"
#include "openblas.h"

#include "windlass/rt/backend.h"
#include "windlass/rt/kernels.h"
#include "windlass/rt/streams.h"

#include "windlass/rt/detail/team.h"

#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <vector>

namespace {

using namespace windlass::rt;

double now() {
  timespec t = {};
  clock_gettime(CLOCK_MONOTONIC, &t);
  return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) * 1e-9;
}

#if defined(__AVX512F__)
constexpr int lanes = 16;
#elif defined(__AVX__)
constexpr int lanes = 8;
#else
constexpr int lanes = 4;
#endif
typedef float vector __attribute__((vector_size(lanes * 4)));

/// Keeps the compiler from computing a chain beforehand, while its value stays in a register.
void keep(vector &value) {
#if defined(__x86_64__)
  asm volatile("" : "+v"(value));
#else
  asm volatile("" : "+w"(value));
#endif
}

/// Floating-point operations per second of `threads` threads with enough independent chains to fill the pipelines.
template <bool loads> double peak(std::int32_t threads) {
  constexpr int chains = 12;
  constexpr std::int64_t rounds = 1'000'000;
  const double start = now();
  detail::for_parts(threads, threads, [](std::int64_t, std::int64_t, std::int32_t) {
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
  });
  return 2.0 * lanes * chains * rounds * threads / (now() - start);
}

} // namespace

int main(int argc, char **argv) {
  const std::int64_t n = argc > 1 ? std::atol(argv[1]) : 1024;
  const auto threads = static_cast<std::int32_t>(argc > 2 ? std::atoi(argv[2]) : 1);
  if (n < 1 || n > 16384 || threads < 1 || threads > 1024)
    return std::fprintf(stderr, "usage: windlass_gemm_peak [SIZE [THREADS]]\n"), 2;
  const std::unique_ptr<stream> s = make_inline_stream(threads, nullptr, 0);
  std::vector<float> a(static_cast<std::size_t>(n * n), 0.5f), b(a), c(a);
  const auto square = [n](std::vector<float> &v) {
    return dense_view(reinterpret_cast<std::byte *>(v.data()), element_type::f32, {n, n});
  };
  const bool has_openblas = cpu::openblas::load().is_ok();
  double best_peak = 0, best_fed = 0, best_matmul = 0, best_openblas = 0;
  for (int turn = 0; turn < 30; ++turn) {
    best_peak = std::max(best_peak, peak<false>(threads));
    best_fed = std::max(best_fed, peak<true>(threads));
    const double flops = 2.0 * static_cast<double>(n * n * n), start = now();
    if (const status result = matmul(*s, square(c), square(a), square(b), 0, 1, false); !result.is_ok())
      return std::fprintf(stderr, "%s\n", result.message().c_str()), 1;
    best_matmul = std::max(best_matmul, flops / (now() - start));
    if (has_openblas) {
      const auto matrix = [n](std::vector<float> &v) { return cpu::matrix{v.data(), n, n, n, 1}; };
      const double start = now();
      cpu::openblas::multiply(matrix(c), matrix(a), matrix(b), 1.0f, 0.0f);
      best_openblas = std::max(best_openblas, flops / (now() - start));
    }
  }
  std::printf("peak in registers %.1f GFLOP/s, with operands from L1 %.1f GFLOP/s, %d threads\n", best_peak * 1e-9,
              best_fed * 1e-9, threads);
  std::printf("matmul of %lld^3 by %s: %.1f GFLOP/s, %.3f of the first peak, %.3f of the second\n",
              static_cast<long long>(n), describe_backend().gemm.c_str(), best_matmul * 1e-9, best_matmul / best_peak,
              best_matmul / best_fed);
  if (has_openblas)
    std::printf("%s, 1 thread: %.1f GFLOP/s\n", cpu::openblas::description().c_str(), best_openblas * 1e-9);
  return 0;
}
