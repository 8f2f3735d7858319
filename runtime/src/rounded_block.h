// A block of f32 rounded to 16 bits, by vector instructions where the processor's set has them.
#ifndef WINDLASS_SRC_ROUNDED_BLOCK_H
#define WINDLASS_SRC_ROUNDED_BLOCK_H

#include "windlass/rt/detail/half.h"

#include <cstdint>

#if defined(__AVX2__) && defined(__F16C__)
#define WINDLASS_ROUNDS_VECTORS
#endif
#if defined(__SSE2__)
#include <immintrin.h>
#endif

namespace windlass::rt::detail {

/// The elements of a block: in 16 bits they fill a line of the cache.
constexpr int block_elements = 32;

// Inlined, for the instructions of the caller.
#define WINDLASS_INLINE inline __attribute__((always_inline))

#if defined(WINDLASS_ROUNDS_VECTORS)

/// Rounds eight numbers as `bf16(float)` does; each result stands in 32 bits.
WINDLASS_INLINE __m256i rounded_lanes(__m256 x) {
  const __m256i bits = _mm256_castps_si256(x), high = _mm256_srli_epi32(bits, 16);
  const __m256i odd = _mm256_and_si256(high, _mm256_set1_epi32(1));
  const __m256i sum = _mm256_add_epi32(bits, _mm256_add_epi32(odd, _mm256_set1_epi32(0x7fff)));
  const __m256i is_nan = _mm256_castps_si256(_mm256_cmp_ps(x, x, _CMP_UNORD_Q));
  return _mm256_blendv_epi8(_mm256_srli_epi32(sum, 16), _mm256_or_si256(high, _mm256_set1_epi32(0x40)), is_nan);
}

WINDLASS_INLINE __m256i rounded_vector(const float *x, bf16 *) {
  const __m256i lanes = _mm256_packus_epi32(rounded_lanes(_mm256_load_ps(x)), rounded_lanes(_mm256_load_ps(x + 8)));
  return _mm256_permute4x64_epi64(lanes, 0xd8); // packing goes by halves of the vectors
}

/// Rounds eight numbers as `f16(float)` does: of a NaN only the sign is kept.
WINDLASS_INLINE __m128i rounded_half(__m256 x) {
  const __m256 nan = _mm256_castsi256_ps(_mm256_set1_epi32(0x7fc00000));
  const __m256 with_sign = _mm256_or_ps(_mm256_and_ps(x, _mm256_set1_ps(-0.0f)), nan);
  return _mm256_cvtps_ph(_mm256_blendv_ps(x, with_sign, _mm256_cmp_ps(x, x, _CMP_UNORD_Q)), _MM_FROUND_TO_NEAREST_INT);
}

WINDLASS_INLINE __m256i rounded_vector(const float *x, f16 *) {
  return _mm256_set_m128i(rounded_half(_mm256_load_ps(x + 8)), rounded_half(_mm256_load_ps(x)));
}

#endif

/// Sets `out` to the numbers of `x`, which is aligned to 64 bytes, rounded. With `streams`, for which `out` is aligned
/// alike, they pass the caches by: lines that are only written are not read first.
template <class H> WINDLASS_INLINE void round_block(H *out, const float *x, bool streams) {
#if defined(WINDLASS_ROUNDS_VECTORS)
  const __m256i low = rounded_vector(x, out), high = rounded_vector(x + 16, out);
  auto *const to = reinterpret_cast<__m256i *>(out);
  if (streams) {
    _mm256_stream_si256(to, low);
    _mm256_stream_si256(to + 1, high);
  } else {
    _mm256_storeu_si256(to, low);
    _mm256_storeu_si256(to + 1, high);
  }
#else
  static_cast<void>(streams);
  for (int k = 0; k < block_elements; ++k)
    out[k] = H(x[k]);
#endif
}

/// Makes what was streamed visible to other threads before what this one writes from now on.
WINDLASS_INLINE void end_streaming() {
#if defined(WINDLASS_ROUNDS_VECTORS)
  _mm_sfence();
#endif
}

} // namespace windlass::rt::detail

#endif
