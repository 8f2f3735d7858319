#include "gemm.h"

#include "gemm_avx512.h"
#include "openblas.h"

#include "windlass/rt/backend.h"
#include "windlass/rt/detail/backend.h"
#include "windlass/rt/detail/instructions.h"
#include "windlass/rt/detail/team.h"

#include <atomic>

namespace windlass::rt::cpu {

status prepare_gemm() { return detail::uses_avx512() ? status() : openblas::load(); }

void gemm(const matrix &c, const matrix &a, const matrix &b, float alpha, float beta) {
  (detail::uses_avx512() ? avx512::multiply : openblas::multiply)(c, a, b, alpha, beta);
}

// OpenBLAS makes its own memory at its first product.
bool prepare_gemm_thread() { return !detail::uses_avx512() || avx512::prepare_thread(); }

void gemm_loops(const matrix &c, const matrix &a, const matrix &b, float alpha, float beta) {
  for (std::int64_t i = 0; i < c.rows; ++i)
    for (std::int64_t j = 0; j < c.columns; ++j) {
      double sum = 0;
      for (std::int64_t k = 0; k < a.columns; ++k)
        sum += static_cast<double>(a.data[i * a.row_stride + k * a.column_stride]) *
               static_cast<double>(b.data[k * b.row_stride + j * b.column_stride]);
      float &out = c.data[i * c.row_stride + j * c.column_stride];
      out = alpha * static_cast<float>(sum) + (beta == 0.0f ? 0.0f : beta * out);
    }
}

} // namespace windlass::rt::cpu

namespace windlass::rt {

std::int64_t detail::kernel_bytes(std::int32_t threads) {
  if (uses_avx512())
    return threads * cpu::avx512::thread_bytes;
  // OpenBLAS 0.3.21: its code, and per thread what it packs of products with many columns.
  return (std::int64_t(8) << 20) + threads * (std::int64_t(32) << 20);
}

status detail::prepare_kernels(std::int32_t threads) {
  WINDLASS_TRY(cpu::prepare_gemm());
  std::atomic<bool> is_ready{true};
  for_parts(threads, threads, [&](std::int64_t, std::int64_t, std::int32_t) {
    if (!cpu::prepare_gemm_thread())
      is_ready.store(false);
  });
  if (is_ready.load())
    return {};
  return bad_input("cannot allocate what " + std::to_string(threads) +
                   " threads multiply matrices with; use fewer --threads")
      .as(diagnostic::allocation);
}

backend_facts describe_backend() {
  const status ready = cpu::prepare_gemm();
  return {"cpu",
          detail::uses_avx512() ? "own kernels for AVX-512"
          : ready.is_ok()       ? cpu::openblas::description()
                                : "",
          ready};
}

} // namespace windlass::rt
