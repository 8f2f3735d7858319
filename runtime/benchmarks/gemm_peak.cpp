// How much of the processor's multiply-add rate matmul reaches.
//
// usage: windlass_gemm_peak [SIZE [THREADS]]
//
// Measures the rate of fused multiply-adds that stay in registers, then matmul of SIZE^3 (default 1024) through the
// runtime's API, in turns, and prints the best of each and their ratio.
#include "blas.h"

#include "windlass/rt/kernels.h"
#include "windlass/rt/streams.h"

#include "windlass/rt/detail/team.h"

#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <vector>

namespace {

using namespace windlass::rt;

/// Of processor time, which other programs on the machine do not add to, per thread.
double seconds(std::int32_t threads) {
  timespec now = {};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return (static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9) / threads;
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
double peak(std::int32_t threads) {
  constexpr int chains = 10;
  constexpr std::int64_t rounds = 2'000'000;
  const double start = seconds(threads);
  detail::for_parts(threads, threads, [](std::int64_t, std::int64_t, std::int32_t) {
    const vector zero = {}, x = zero + 0.5f, y = zero + 0.25f;
    // Variables and not an array, which the compiler would leave in memory.
    vector a = zero, b = zero, c = zero, d = zero, e = zero, f = zero, g = zero, h = zero, i = zero, j = zero;
    for (std::int64_t r = 0; r < rounds; ++r) {
      a = a * x + y, b = b * x + y, c = c * x + y, d = d * x + y, e = e * x + y;
      f = f * x + y, g = g * x + y, h = h * x + y, i = i * x + y, j = j * x + y;
      keep(a), keep(b), keep(c), keep(d), keep(e), keep(f), keep(g), keep(h), keep(i), keep(j);
    }
  });
  return 2.0 * lanes * chains * rounds * threads / (seconds(threads) - start);
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
  double best_peak = 0, best_matmul = 0;
  for (int turn = 0; turn < 30; ++turn) {
    best_peak = std::max(best_peak, peak(threads));
    const double start = seconds(threads);
    if (const status result = matmul(*s, square(c), square(a), square(b), 0, 1, false); !result.is_ok())
      return std::fprintf(stderr, "%s\n", result.message().c_str()), 1;
    best_matmul = std::max(best_matmul, 2.0 * static_cast<double>(n * n * n) / (seconds(threads) - start));
  }
  std::printf("kernels %s, %d threads: peak %.1f GFLOP/s, matmul of %lld^3 %.1f GFLOP/s, ratio %.3f\n",
              cpu::blas_core_name().c_str(), threads, best_peak * 1e-9, static_cast<long long>(n), best_matmul * 1e-9,
              best_matmul / best_peak);
  return 0;
}
