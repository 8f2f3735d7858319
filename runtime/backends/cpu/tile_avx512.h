// Packing of matrices and products of what is packed, for processors with AVX-512.
#ifndef WINDLASS_BACKENDS_CPU_TILE_AVX512_H
#define WINDLASS_BACKENDS_CPU_TILE_AVX512_H

#if defined(__x86_64__)

#include "gemm.h"

#include <algorithm>
#include <array>
#include <utility>

#if !defined(__clang__)
// GCC 12 warns of the undefined vectors inside of its own header (its bug 105593).
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#pragma GCC diagnostic ignored "-Wuninitialized"
#endif
#include <immintrin.h>

#define WINDLASS_AVX512 __attribute__((target("avx512f")))

namespace windlass::rt::cpu::avx512 {

constexpr std::int64_t lanes = 16;
// 14 x 32 results fill 28 of the 32 registers; each step loads 14 + 2 values for 28 multiply-adds. Panels of a are
// padded to 16 lanes so that packing stores whole cache lines.
constexpr std::int64_t tile_rows = 14, tile_columns = 2 * lanes;

/// Many vectors side by side ("lanes") along a depth, as both operands are seen by the innermost loop: the rows of a,
/// the columns of b.
struct strip {
  const float *data;
  std::int64_t count, depth, lane_stride, depth_stride;
};

WINDLASS_AVX512 inline __mmask16 first_lanes(std::int64_t n) {
  return static_cast<__mmask16>(n >= lanes ? 0xffff : (1u << n) - 1);
}

// Pairs of values, from the lower or upper halves of x and y in turns.
WINDLASS_AVX512 inline __m512 low_pairs(__m512 x, __m512 y) {
  return _mm512_castpd_ps(_mm512_unpacklo_pd(_mm512_castps_pd(x), _mm512_castps_pd(y)));
}
WINDLASS_AVX512 inline __m512 high_pairs(__m512 x, __m512 y) {
  return _mm512_castpd_ps(_mm512_unpackhi_pd(_mm512_castps_pd(x), _mm512_castps_pd(y)));
}

/// Columns of 16 x 16 values become rows.
WINDLASS_AVX512 inline void transpose(__m512 (&r)[16]) {
  __m512 t[16];
  for (int i = 0; i < 8; ++i) {
    t[2 * i] = _mm512_unpacklo_ps(r[2 * i], r[2 * i + 1]);
    t[2 * i + 1] = _mm512_unpackhi_ps(r[2 * i], r[2 * i + 1]);
  }
  for (int i = 0; i < 16; i += 4) {
    r[i] = low_pairs(t[i], t[i + 2]);
    r[i + 1] = high_pairs(t[i], t[i + 2]);
    r[i + 2] = low_pairs(t[i + 1], t[i + 3]);
    r[i + 3] = high_pairs(t[i + 1], t[i + 3]);
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

/// `count` lanes, at most 16, from `lane` on and the depths begin to end, to to[depth * pitch]; the vectors' other
/// lanes become 0.
WINDLASS_AVX512 inline void pack_lanes(float *to, std::int64_t pitch, const strip &from, std::int64_t lane,
                                       std::int64_t count, std::int64_t begin, std::int64_t end) {
  const float *data = from.data + lane * from.lane_stride;
  if (from.lane_stride == 1) {
    const __mmask16 there = first_lanes(count);
    for (std::int64_t d = begin; d < end; ++d)
      _mm512_store_ps(to + d * pitch, _mm512_maskz_loadu_ps(there, data + d * from.depth_stride));
    return;
  }
  std::int64_t d = begin;
  if (from.depth_stride == 1)
    for (; d + lanes <= end; d += lanes) {
      __m512 rows[lanes];
      for (std::int64_t i = 0; i < lanes; ++i)
        rows[i] = i < count ? _mm512_loadu_ps(data + i * from.lane_stride + d) : _mm512_setzero_ps();
      transpose(rows);
      for (std::int64_t i = 0; i < lanes; ++i)
        _mm512_store_ps(to + (d + i) * pitch, rows[i]);
    }
  for (; d < end; ++d) {
    alignas(64) float line[lanes] = {};
    for (std::int64_t i = 0; i < count; ++i)
      line[i] = data[i * from.lane_stride + d * from.depth_stride];
    _mm512_store_ps(to + d * pitch, _mm512_load_ps(line));
  }
}

/// Packs a strip into panels of `width` lanes, each [depth][width rounded up to whole vectors].
WINDLASS_AVX512 inline void pack(float *to, std::int64_t width, const strip &from) {
  const std::int64_t pitch = (width + lanes - 1) / lanes * lanes;
  // Where lanes are neighbours in memory, some rows at a time over all panels, so that pages are read as wholes.
  const std::int64_t step = from.lane_stride == 1 ? 8 : from.depth;
  for (std::int64_t d = 0; d < from.depth; d += step)
    for (std::int64_t panel = 0; panel < from.count; panel += width)
      for (std::int64_t lane = 0; lane < width && panel + lane < from.count; lane += lanes) {
        const std::int64_t count = std::min({lanes, width - lane, from.count - panel - lane});
        pack_lanes(to + panel / width * pitch * from.depth + lane, pitch, from, panel + lane, count, d,
                   std::min(from.depth, d + step));
      }
}

/// Scale and addition that end a tile: c = alpha * sum + beta * c.
struct ending {
  float alpha, beta;
};

/// The tile c[rows, 16 * vectors] = alpha * a b + beta * c over `depth` steps of panels; of the last vector only the
/// lanes `last`. The rows of c are `stride` apart, those of a `row_step`, and what follows in depth is `depth_step`
/// away: constants, so that every address is one register and a number.
template <int row_step, int depth_step, int rows, int vectors>
WINDLASS_AVX512 void multiply_tile(std::int64_t depth, const float *a, const float *b, float *c, std::int64_t stride,
                                   __mmask16 last, ending end) {
  __m512 sums[rows][vectors];
#pragma GCC unroll 14
  for (int i = 0; i < rows; ++i) {
#pragma GCC unroll 2
    for (int j = 0; j < vectors; ++j)
      sums[i][j] = _mm512_setzero_ps();
    _mm_prefetch(reinterpret_cast<const char *>(c + i * stride), _MM_HINT_T0);
    _mm_prefetch(reinterpret_cast<const char *>(c + i * stride + vectors * lanes - 1), _MM_HINT_T0);
  }
#pragma GCC unroll 2
  for (std::int64_t d = 0; d < depth; ++d) {
    __m512 y[vectors];
#pragma GCC unroll 2
    for (int j = 0; j < vectors; ++j)
      y[j] = _mm512_loadu_ps(b + j * lanes);
#pragma GCC unroll 14
    for (int i = 0; i < rows; ++i) {
      const __m512 x = _mm512_set1_ps(a[i * row_step]);
#pragma GCC unroll 2
      for (int j = 0; j < vectors; ++j)
        sums[i][j] = _mm512_fmadd_ps(x, y[j], sums[i][j]);
    }
    a += depth_step;
    b += tile_columns;
  }
  const __m512 alpha = _mm512_set1_ps(end.alpha), beta = _mm512_set1_ps(end.beta);
#pragma GCC unroll 14
  for (int i = 0; i < rows; ++i)
#pragma GCC unroll 2
    for (int j = 0; j < vectors; ++j) {
      float *const out = c + i * stride + j * lanes;
      const __mmask16 there = j + 1 == vectors ? last : first_lanes(lanes);
      __m512 sum = _mm512_mul_ps(alpha, sums[i][j]);
      if (end.beta != 0.0f)
        sum = _mm512_fmadd_ps(beta, _mm512_maskz_loadu_ps(there, out), sum);
      _mm512_mask_storeu_ps(out, there, sum);
    }
}

using tile_function = void (*)(std::int64_t, const float *, const float *, float *, std::int64_t, __mmask16, ending);
template <int row_step, int depth_step, std::size_t... rows> constexpr auto tile_table(std::index_sequence<rows...>) {
  return std::array<std::array<tile_function, 2>, sizeof...(rows)>{
      {{multiply_tile<row_step, depth_step, static_cast<int>(rows) + 1, 1>,
        multiply_tile<row_step, depth_step, static_cast<int>(rows) + 1, 2>}...}};
}
/// By the number of rows less one and of vectors less one.
template <int row_step, int depth_step>
constexpr auto tiles = tile_table<row_step, depth_step>(std::make_index_sequence<tile_rows>());

/// Rows of a in tiles of `height`, each tile `pitch` from the last.
struct left_tiles {
  const float *data;
  std::int64_t height, pitch;
};

/// c = alpha * a b + beta * c over `depth` steps; b lies in panels of 32 columns, `panel` apart.
template <int row_step, int depth_step>
WINDLASS_AVX512 void multiply_panels(const matrix &c, const left_tiles &a, const float *b, std::int64_t panel,
                                     std::int64_t depth, ending end) {
  for (std::int64_t i = 0; i < c.rows; i += a.height)
    for (std::int64_t j = 0; j < c.columns; j += tile_columns) {
      const std::int64_t rows = std::min(a.height, c.rows - i), columns = std::min(tile_columns, c.columns - j);
      const std::int64_t vectors = (columns + lanes - 1) / lanes;
      const tile_function multiply =
          tiles<row_step, depth_step>[static_cast<std::size_t>(rows - 1)][static_cast<std::size_t>(vectors - 1)];
      const float *const left = a.data + i / a.height * a.pitch, *const right = b + j / tile_columns * panel;
      const __mmask16 last = first_lanes(columns - (vectors - 1) * lanes);
      const matrix tile = c.part(i, j, rows, columns);
      if (tile.column_stride == 1) {
        multiply(depth, left, right, tile.data, tile.row_stride, last, end);
        continue;
      }
      alignas(64) float sums[tile_rows * tile_columns];
      multiply(depth, left, right, sums, tile_columns, last, {end.alpha, 0.0f});
      for (std::int64_t y = 0; y < rows; ++y)
        for (std::int64_t x = 0; x < columns; ++x) {
          float &out = tile.data[y * tile.row_stride + x * tile.column_stride];
          out = sums[y * tile_columns + x] + (end.beta == 0.0f ? 0.0f : end.beta * out);
        }
    }
}

} // namespace windlass::rt::cpu::avx512

#endif

#endif
