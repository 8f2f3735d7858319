#include "gemm.h"

#include "gemm_avx512.h"
#include "openblas.h"

#include "windlass/rt/backend.h"

namespace windlass::rt::cpu {

status prepare_gemm() { return avx512::is_supported() ? status() : openblas::load(); }

void gemm(const matrix &c, const matrix &a, const matrix &b, float alpha, float beta) {
  static const bool has_avx512 = avx512::is_supported();
  (has_avx512 ? avx512::multiply : openblas::multiply)(c, a, b, alpha, beta);
}

} // namespace windlass::rt::cpu

namespace windlass::rt {

backend_facts describe_backend() {
  const status ready = cpu::prepare_gemm();
  return {"cpu",
          cpu::avx512::is_supported() ? "own kernels for AVX-512"
          : ready.is_ok()             ? cpu::openblas::description()
                                      : "",
          ready};
}

} // namespace windlass::rt
