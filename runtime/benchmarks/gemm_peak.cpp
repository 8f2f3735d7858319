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
#include "windlass/rt/kernel_times.h"
#include "windlass/rt/kernels.h"
#include "windlass/rt/streams.h"

#include "windlass/rt/detail/machine_rates.h"

#include <cstdio>
#include <cstdlib>
#include <vector>

using namespace windlass::rt;

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
    best_peak = std::max(best_peak, detail::multiply_add_rate(threads, false, 1));
    best_fed = std::max(best_fed, detail::multiply_add_rate(threads, true, 1));
    const double flops = 2.0 * static_cast<double>(n * n * n), start = clock_seconds();
    if (const status result = matmul(*s, square(c), square(a), square(b), 0, 1, false); !result.is_ok())
      return std::fprintf(stderr, "%s\n", result.message().c_str()), 1;
    best_matmul = std::max(best_matmul, flops / (clock_seconds() - start));
    if (has_openblas) {
      const auto matrix = [n](std::vector<float> &v) { return cpu::matrix{v.data(), n, n, n, 1}; };
      const double start = clock_seconds();
      cpu::openblas::multiply(matrix(c), matrix(a), matrix(b), 1.0f, 0.0f);
      best_openblas = std::max(best_openblas, flops / (clock_seconds() - start));
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
