// Our own GEMM for processors with AVX-512. At the shapes of a GPT-2 it is 0 to 7 % faster than the OpenBLAS 0.3.21 of
// Debian 12, on the small products of attention up to 30 % (benchmarks/results/gemm.txt); it takes any strides, and
// panels that are packed once or epilogues can be added to it.
#ifndef WINDLASS_BACKENDS_CPU_GEMM_AVX512_H
#define WINDLASS_BACKENDS_CPU_GEMM_AVX512_H

#include "gemm.h"

namespace windlass::rt::cpu::avx512 {

bool is_supported();

/// c = alpha * a b + beta * c on the calling thread, any strides.
void multiply(const matrix &c, const matrix &a, const matrix &b, float alpha, float beta);

} // namespace windlass::rt::cpu::avx512

#endif
