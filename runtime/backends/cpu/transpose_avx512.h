// Transposes of blocks in vector registers.
#ifndef WINDLASS_BACKENDS_CPU_TRANSPOSE_AVX512_H
#define WINDLASS_BACKENDS_CPU_TRANSPOSE_AVX512_H

#include <immintrin.h>

#define WINDLASS_AVX512 __attribute__((target("avx512f")))

namespace windlass::rt::cpu::avx512 {

/// Columns of 16 x 16 values become rows.
WINDLASS_AVX512 inline void transpose(__m512 (&r)[16]) {
  const auto low = [](__m512 x, __m512 y) WINDLASS_AVX512 {
    return _mm512_castpd_ps(_mm512_unpacklo_pd(_mm512_castps_pd(x), _mm512_castps_pd(y)));
  };
  const auto high = [](__m512 x, __m512 y) WINDLASS_AVX512 {
    return _mm512_castpd_ps(_mm512_unpackhi_pd(_mm512_castps_pd(x), _mm512_castps_pd(y)));
  };
  __m512 t[16];
  for (int i = 0; i < 8; ++i) {
    t[2 * i] = _mm512_unpacklo_ps(r[2 * i], r[2 * i + 1]);
    t[2 * i + 1] = _mm512_unpackhi_ps(r[2 * i], r[2 * i + 1]);
  }
  for (int i = 0; i < 16; i += 4) {
    r[i] = low(t[i], t[i + 2]);
    r[i + 1] = high(t[i], t[i + 2]);
    r[i + 2] = low(t[i + 1], t[i + 3]);
    r[i + 3] = high(t[i + 1], t[i + 3]);
  }
  // Now blocks of four values move as wholes: even ones by 0x88, odd ones by 0xdd.
  for (int i = 0; i < 4; ++i) {
    t[i] = _mm512_shuffle_f32x4(r[i], r[4 + i], 0x88);
    t[4 + i] = _mm512_shuffle_f32x4(r[i], r[4 + i], 0xdd);
    t[8 + i] = _mm512_shuffle_f32x4(r[8 + i], r[12 + i], 0x88);
    t[12 + i] = _mm512_shuffle_f32x4(r[8 + i], r[12 + i], 0xdd);
  }
  for (int i = 0; i < 4; ++i) {
    r[i] = _mm512_shuffle_f32x4(t[i], t[8 + i], 0x88);
    r[8 + i] = _mm512_shuffle_f32x4(t[i], t[8 + i], 0xdd);
    r[4 + i] = _mm512_shuffle_f32x4(t[4 + i], t[12 + i], 0x88);
    r[12 + i] = _mm512_shuffle_f32x4(t[4 + i], t[12 + i], 0xdd);
  }
}

} // namespace windlass::rt::cpu::avx512

#endif
