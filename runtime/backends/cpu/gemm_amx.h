// Products of f32 matrices on the tile units of processors with AMX.
#ifndef WINDLASS_BACKENDS_CPU_GEMM_AMX_H
#define WINDLASS_BACKENDS_CPU_GEMM_AMX_H

#include "gemm.h"

namespace windlass::rt::cpu::amx {

/// Whether the processor has the instructions and the system lets this process use them, for which the first call asks.
bool is_supported();
/// Whether a product of these sizes is large enough for tiles of 32 x 32 x 32 to pay.
bool pays(std::int64_t rows, std::int64_t columns, std::int64_t depth);
/// What a thread keeps for its products.
constexpr std::int64_t thread_bytes = 8 << 20;
/// Makes it for the calling thread; false when there is no memory.
bool prepare_thread();
/// c = alpha * a b + beta * c on the calling thread, any strides. Only where is_supported.
///
/// Each f32 is the sum of three numbers of 8 significant bits, cut off without rounding: x = x0 + x1 + x2, exactly but
/// for parts below the normal range, which count as 0. Of the nine products of such parts the six largest are added up
/// in f32: a0 b0 + a0 b1 + a1 b0 + a0 b2 + a1 b1 + a2 b0. What is left out is below 2^-21 |a b| and about 2^-24.5 |a b|
/// in the mean, less than f32 sums round away. An infinite operand gives NaN.
void multiply(const matrix &c, const matrix &a, const matrix &b, float alpha, float beta);

} // namespace windlass::rt::cpu::amx

#endif
