#include "gemm_avx512.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <utility>

#if defined(__x86_64__)
#if !defined(__clang__)
// GCC 12 warns of the undefined vectors inside of its own header (its bug 105593).
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#pragma GCC diagnostic ignored "-Wuninitialized"
#endif
#include <immintrin.h>
#include <sys/mman.h>
#endif

namespace windlass::rt::cpu::avx512 {

#if defined(__x86_64__)

// The blocked algorithm of Goto and van de Geijn ("Anatomy of high-performance matrix multiplication", 2008): a block
// of b is packed for the L2 cache, blocks of a beside it, and the innermost loop adds products to a tile of c that
// stays in registers. A narrow panel of a stays in L1 while the panels of b stream by.

#define WINDLASS_AVX512 __attribute__((target("avx512f")))

namespace {

constexpr std::int64_t lanes = 16;
// 14 x 32 results fill 28 of the 32 registers; each step loads 14 + 2 values for 28 multiply-adds. Panels of a are
// padded to 16 lanes so that packing stores whole cache lines.
constexpr std::int64_t tile_rows = 14, tile_columns = 2 * lanes;
// At most: a panel of a, 512 x 16 floats, is 32 KiB of the L1 cache; a block of b, 512 x 512 floats, 1 MiB, half of the
// L2 cache of a server's core; the block of a comes from L3, each panel once for a whole block of b.
constexpr std::int64_t block_depth = 512, block_rows = 74 * tile_rows, block_columns = 16 * tile_columns;

/// Packed blocks of one thread, for as long as it lives: together less than one huge page, whose single entry in the
/// translation buffer spares the panels' streams a walk at every 4 KiB.
class buffers {
  static constexpr auto bytes = static_cast<std::size_t>(thread_bytes);
  static_assert((block_rows / tile_rows * lanes + block_columns) * block_depth * 4 <= thread_bytes);
  struct release {
    void operator()(float *p) const { std::free(p); }
  };
  std::unique_ptr<float[], release> memory;

public:
  /// Allocates and touches the memory unless that is done.
  bool prepare() {
    if (memory != nullptr)
      return true;
    memory.reset(static_cast<float *>(std::aligned_alloc(bytes, bytes)));
    if (memory == nullptr)
      return false;
    madvise(memory.get(), bytes, MADV_HUGEPAGE);
    std::memset(memory.get(), 0, bytes);
    return true;
  }
  float *b() const { return memory.get(); }
  float *a() const { return memory.get() + block_columns * block_depth; }
};
thread_local buffers packed;

/// Many vectors side by side ("lanes") along a depth, as both operands are seen by the innermost loop: the rows of a,
/// the columns of b.
struct strip {
  const float *data;
  std::int64_t count, depth, lane_stride, depth_stride;
};

WINDLASS_AVX512 inline __mmask16 first_lanes(std::int64_t n) {
  return static_cast<__mmask16>(n >= lanes ? 0xffff : (1u << n) - 1);
}

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

/// `count` lanes, at most 16, from `lane` on and the depths begin to end, to to[depth * pitch]; the vectors' other
/// lanes become 0.
WINDLASS_AVX512 void pack_lanes(float *to, std::int64_t pitch, const strip &from, std::int64_t lane, std::int64_t count,
                                std::int64_t begin, std::int64_t end) {
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
WINDLASS_AVX512 void pack(float *to, std::int64_t width, const strip &from) {
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

/// Size of the blocks that `total` is cut into: the fewest within the limit, about equal, multiples of `unit`.
std::int64_t block_size(std::int64_t total, std::int64_t limit, std::int64_t unit) {
  const std::int64_t blocks = std::max<std::int64_t>(1, (total + limit - 1) / limit);
  return std::min(limit, ((total + blocks - 1) / blocks + unit - 1) / unit * unit);
}

/// Scale and addition that end a tile: c = alpha * sum + beta * c.
struct ending {
  float alpha, beta;
};

/// The tile c[rows, 16 * vectors] = alpha * a b + beta * c over `depth` steps of packed panels; of the last vector only
/// the lanes `last`. The rows of c are `stride` apart.
template <int rows, int vectors>
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
      const __m512 x = _mm512_set1_ps(a[i]);
#pragma GCC unroll 2
      for (int j = 0; j < vectors; ++j)
        sums[i][j] = _mm512_fmadd_ps(x, y[j], sums[i][j]);
    }
    a += lanes;
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
template <std::size_t... rows> constexpr auto tile_table(std::index_sequence<rows...>) {
  return std::array<std::array<tile_function, 2>, sizeof...(rows)>{
      {{multiply_tile<static_cast<int>(rows) + 1, 1>, multiply_tile<static_cast<int>(rows) + 1, 2>}...}};
}
/// By the number of rows less one and of vectors less one.
constexpr auto tiles = tile_table(std::make_index_sequence<tile_rows>());

/// c = alpha * a b + beta * c for the packed blocks.
WINDLASS_AVX512 void multiply_blocks(const matrix &c, const buffers &packed, std::int64_t depth, ending end) {
  for (std::int64_t i = 0; i < c.rows; i += tile_rows)
    for (std::int64_t j = 0; j < c.columns; j += tile_columns) {
      const std::int64_t rows = std::min(tile_rows, c.rows - i), columns = std::min(tile_columns, c.columns - j);
      const std::int64_t vectors = (columns + lanes - 1) / lanes;
      const tile_function multiply = tiles[static_cast<std::size_t>(rows - 1)][static_cast<std::size_t>(vectors - 1)];
      const float *const a = packed.a() + i / tile_rows * lanes * depth, *const b = packed.b() + j * depth;
      const __mmask16 last = first_lanes(columns - (vectors - 1) * lanes);
      const matrix tile = c.part(i, j, rows, columns);
      if (tile.column_stride == 1) {
        multiply(depth, a, b, tile.data, tile.row_stride, last, end);
        continue;
      }
      alignas(64) float sums[tile_rows * tile_columns];
      multiply(depth, a, b, sums, tile_columns, last, {end.alpha, 0.0f});
      for (std::int64_t y = 0; y < rows; ++y)
        for (std::int64_t x = 0; x < columns; ++x) {
          float &out = tile.data[y * tile.row_stride + x * tile.column_stride];
          out = sums[y * tile_columns + x] + (end.beta == 0.0f ? 0.0f : end.beta * out);
        }
    }
}

} // namespace

bool is_supported() { return __builtin_cpu_supports("avx512f"); }
bool prepare_thread() { return packed.prepare(); }

WINDLASS_AVX512 void multiply(const matrix &c, const matrix &a, const matrix &b, float alpha, float beta) {
  if (c.column_stride != 1 && c.row_stride == 1)
    return multiply(c.transposed(), b.transposed(), a.transposed(), alpha, beta);
  if (a.columns == 0) { // the sum of nothing
    for (std::int64_t i = 0; i < c.rows; ++i)
      for (std::int64_t j = 0; j < c.columns; ++j) {
        float &out = c.data[i * c.row_stride + j * c.column_stride];
        out = beta == 0.0f ? 0.0f : beta * out;
      }
    return;
  }
  if (!packed.prepare())
    return gemm_loops(c, a, b, alpha, beta);
  const std::int64_t row_step = block_size(c.rows, block_rows, tile_rows);
  const std::int64_t depth_step = block_size(a.columns, block_depth, lanes);
  for (std::int64_t row = 0; row < c.rows; row += row_step)
    for (std::int64_t d = 0; d < a.columns; d += depth_step) {
      const std::int64_t height = std::min(row_step, c.rows - row), depth = std::min(depth_step, a.columns - d);
      const ending end = {alpha, d == 0 ? beta : 1.0f};
      const matrix left = a.part(row, d, height, depth);
      pack(packed.a(), tile_rows, {left.data, height, depth, left.row_stride, left.column_stride});
      for (std::int64_t column = 0; column < c.columns; column += block_columns) {
        const matrix right = b.part(d, column, depth, std::min(block_columns, c.columns - column));
        pack(packed.b(), tile_columns, {right.data, right.columns, depth, right.column_stride, right.row_stride});
        multiply_blocks(c.part(row, column, height, right.columns), packed, depth, end);
      }
    }
}

#else

bool is_supported() { return false; }

// Never called where is_supported is false.
bool prepare_thread() { return false; }
void multiply(const matrix &, const matrix &, const matrix &, float, float) {}

#endif

} // namespace windlass::rt::cpu::avx512
