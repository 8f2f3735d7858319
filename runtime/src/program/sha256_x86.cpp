// SHA-256 with the SHA extensions of x86-64: checkpoints of gigabytes are hashed when they are written and read.
#include "sha256_blocks.h"

#if defined(__x86_64__)

#include <cpuid.h>
#include <immintrin.h>

namespace windlass::rt {

bool has_sha256_instructions() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  bool has_sse41 = __get_cpuid(1, &a, &b, &c, &d) != 0 && (c >> 19 & 1) != 0;
  return has_sse41 && __get_cpuid_count(7, 0, &a, &b, &c, &d) != 0 && (b >> 29 & 1) != 0;
}

__attribute__((target("sha,sse4.1"))) void sha256_accelerated(std::uint32_t *state, const std::uint8_t *blocks,
                                                              std::size_t count) {
  // The instructions want the words as (a b e f) and (c d g h), highest first.
  __m128i dcba = _mm_loadu_si128(reinterpret_cast<const __m128i *>(state));
  __m128i hgfe = _mm_loadu_si128(reinterpret_cast<const __m128i *>(state + 4));
  __m128i cdab = _mm_shuffle_epi32(dcba, 0xb1), efgh = _mm_shuffle_epi32(hgfe, 0x1b);
  __m128i abef = _mm_alignr_epi8(cdab, efgh, 8), cdgh = _mm_blend_epi16(efgh, cdab, 0xf0);
  const __m128i big_endian = _mm_set_epi64x(0x0c0d0e0f08090a0b, 0x0405060700010203);
  for (; count > 0; --count, blocks += 64) {
    const __m128i abef_before = abef, cdgh_before = cdgh;
    __m128i w[4];
    for (int i = 0; i < 4; ++i)
      w[i] = _mm_shuffle_epi8(_mm_loadu_si128(reinterpret_cast<const __m128i *>(blocks + 16 * i)), big_endian);
    for (int i = 0; i < 16; ++i) {
      __m128i constants = _mm_loadu_si128(reinterpret_cast<const __m128i *>(sha256_constants + 4 * i));
      __m128i sum = _mm_add_epi32(w[i % 4], constants);
      cdgh = _mm_sha256rnds2_epu32(cdgh, abef, sum);
      abef = _mm_sha256rnds2_epu32(abef, cdgh, _mm_shuffle_epi32(sum, 0x0e));
      if (i < 12) {
        // The four words that follow in 16, from those at distance 16, 15, 7 and 2.
        const __m128i &next = w[(i + 1) % 4], &third = w[(i + 2) % 4], &last = w[(i + 3) % 4];
        __m128i partial = _mm_add_epi32(_mm_sha256msg1_epu32(w[i % 4], next), _mm_alignr_epi8(last, third, 4));
        w[i % 4] = _mm_sha256msg2_epu32(partial, last);
      }
    }
    abef = _mm_add_epi32(abef, abef_before);
    cdgh = _mm_add_epi32(cdgh, cdgh_before);
  }
  __m128i feba = _mm_shuffle_epi32(abef, 0x1b), dchg = _mm_shuffle_epi32(cdgh, 0xb1);
  _mm_storeu_si128(reinterpret_cast<__m128i *>(state), _mm_blend_epi16(feba, dchg, 0xf0));
  _mm_storeu_si128(reinterpret_cast<__m128i *>(state + 4), _mm_alignr_epi8(dchg, feba, 8));
}

} // namespace windlass::rt

#else

namespace windlass::rt {

bool has_sha256_instructions() { return false; }
void sha256_accelerated(std::uint32_t *state, const std::uint8_t *blocks, std::size_t count) {
  sha256_portable(state, blocks, count);
}

} // namespace windlass::rt

#endif
