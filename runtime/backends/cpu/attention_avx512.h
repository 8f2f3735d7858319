// Attention for processors with AVX-512: a head's keys and values are packed once for all of its queries.
#ifndef WINDLASS_BACKENDS_CPU_ATTENTION_AVX512_H
#define WINDLASS_BACKENDS_CPU_ATTENTION_AVX512_H

#include "gemm.h"

namespace windlass::rt::cpu::avx512 {

/// One head. The mask may be without data; `out` is read by the gradient, which alone has the last row of operands.
struct attention_head {
  matrix q, k, v, out, mask;
  float *lse;
  std::int64_t lse_stride;
  float scale;
  bool causal;
  matrix dout, dq, dk, dv;
};

/// The rows of queries that are worked on at a time: two vectors.
constexpr std::int64_t attention_rows = 32;

/// Returns whether the calling thread can use this kernel on heads of these sizes: where a block has rows enough, and
/// what is packed fits into the memory of thread_memory(). Depends only on the sizes, unless that memory is missing.
bool can_attend(std::int64_t queries, std::int64_t keys, std::int64_t width, std::int64_t value_width, bool gradient);

/// Packs what is the same for all queries of `head`; to be called before blocks of a head with other keys.
void pack_attention(const attention_head &head, bool gradient);
/// Computes out and lse of the queries from `first`, a multiple of attention_rows, on; `scores` has room for
/// attention_rows times the keys.
void attention_block(const attention_head &head, std::int64_t first, float *scores);
/// Computes dq of these queries, and dk and dv, which are overwritten if `overwrites` is set, or else added to. It must
/// be set for the last block of the first head and for no other. `scores` has room for two times as much.
void attention_grad_block(const attention_head &head, std::int64_t first, bool overwrites, float *scores);

} // namespace windlass::rt::cpu::avx512

#endif
