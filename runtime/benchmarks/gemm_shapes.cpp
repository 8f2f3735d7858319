// Our GEMM beside OpenBLAS, on one thread in turns, at the products of a GPT-2 layer of 124M parameters (1024 tokens)
// and at small ones as in attention; with the left or right operand transposed.
//
// usage: windlass_gemm_shapes
#include "gemm_avx512.h"
#include "openblas.h"

#include "windlass/rt/detail/instructions.h"

#include <algorithm>
#include <cstdio>
#include <ctime>
#include <vector>

namespace {

using namespace windlass::rt::cpu;

double now() {
  timespec t = {};
  clock_gettime(CLOCK_MONOTONIC, &t);
  return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) * 1e-9;
}

struct shape {
  std::int64_t m, n, k;
};

void compare(const shape &s, bool a_transposed, bool b_transposed) {
  const auto make = [](std::int64_t n) { return std::vector<float>(static_cast<std::size_t>(n), 0.5f); };
  std::vector<float> a = make(s.m * s.k), b = make(s.k * s.n), c = make(s.m * s.n);
  const matrix left = a_transposed ? matrix{a.data(), s.m, s.k, 1, s.m} : matrix{a.data(), s.m, s.k, s.k, 1};
  const matrix right = b_transposed ? matrix{b.data(), s.k, s.n, 1, s.k} : matrix{b.data(), s.k, s.n, s.n, 1};
  const std::int64_t repeats = std::max<std::int64_t>(1, 50'000'000 / (s.m * s.n * s.k));
  const auto rate = [&](auto multiply) {
    const double start = now();
    for (std::int64_t i = 0; i < repeats; ++i)
      multiply({c.data(), s.m, s.n, s.n, 1}, left, right, 1.0f, 0.0f);
    return 2e-9 * static_cast<double>(s.m * s.n * s.k * repeats) / (now() - start);
  };
  double own = 0, rival = 0;
  for (int turn = 0; turn < 8; ++turn) {
    own = std::max(own, rate(avx512::multiply));
    rival = std::max(rival, rate(openblas::multiply));
  }
  std::printf("%5lld x %5lld x %5lld  %c%c  own %6.1f  OpenBLAS %6.1f GFLOP/s  ratio %.2f\n",
              static_cast<long long>(s.m), static_cast<long long>(s.n), static_cast<long long>(s.k),
              a_transposed ? 'T' : 'N', b_transposed ? 'T' : 'N', own, rival, own / rival);
}

} // namespace

int main() {
  if (!windlass::rt::detail::uses_avx512() || !openblas::load().is_ok())
    return std::fprintf(stderr, "needs a processor with AVX-512 and the package libopenblas0-openmp\n"), 1;
  const shape shapes[] = {{1024, 2304, 768}, {1024, 768, 768}, {1024, 3072, 768}, {1024, 768, 3072}, {768, 3072, 1024},
                          {1024, 6288, 768}, {64, 256, 64},    {256, 64, 64},     {64, 64, 256},     {256, 64, 16}};
  for (const shape &s : shapes) {
    compare(s, false, false);
    compare(s, false, true);
    compare(s, true, false);
  }
  return 0;
}
