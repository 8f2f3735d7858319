// Our own GEMM for processors with AVX-512. At the shapes of a GPT-2 it is 1 % slower to 7 % faster than the OpenBLAS
// 0.3.21 of Debian 12, on the small products of attention up to 30 % faster (docs/rfcs/0002-own-gemm.md); it takes any
// strides, and panels that are packed once or epilogues can be added to it.
#ifndef WINDLASS_BACKENDS_CPU_GEMM_AVX512_H
#define WINDLASS_BACKENDS_CPU_GEMM_AVX512_H

#include "gemm.h"

// Where the processor has no AVX-512 nothing of this may be called.
namespace windlass::rt::cpu::avx512 {

/// The bytes that a thread keeps for packed blocks.
constexpr std::int64_t thread_bytes = std::int64_t(1) << 22;
/// Allocates them for the calling thread; false when there is no memory for them.
bool prepare_thread();
/// Returns where they begin, allocating them first if necessary; a product on the calling thread overwrites them. Null
/// without memory.
float *thread_memory();

/// c = alpha * a b + beta * c on the calling thread, any strides.
void multiply(const matrix &c, const matrix &a, const matrix &b, float alpha, float beta);

} // namespace windlass::rt::cpu::avx512

#endif
