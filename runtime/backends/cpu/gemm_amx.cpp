#include "gemm_amx.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <memory>

#if defined(__x86_64__) && defined(__linux__)
#if !defined(__clang__)
// GCC 12 warns of the undefined vectors inside of its own header (its bug 105593).
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#pragma GCC diagnostic ignored "-Wuninitialized"
#endif
#include "transpose_avx512.h"

#include <cpuid.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

namespace windlass::rt::cpu::amx {

#if defined(__x86_64__) && defined(__linux__)

// A product of f32 as six products of bf16, after Henry, Tang and Heinecke ("Leveraging the bfloat16 artificial
// intelligence datatype for higher-precision computations", 2019). The tile unit multiplies bf16 sixteen times as fast
// as vector units multiply f32, so that six products still take less than half of the time.

#define WINDLASS_AMX __attribute__((target("avx512f,avx512bw,amx-tile,amx-bf16")))

namespace {

// A tile holds 16 lanes (rows of a, columns of b) by 32 of the depth. The order within these 32 is free as long as both
// operands have the same: pairs are (k, k + 16), which takes one shift and one merge of two vectors.
constexpr std::int64_t lanes = 16, tile_depth = 32, tile_bytes = 1024, parts = 3;
// A panel is two tiles wide. Of each depth step it holds, for both tiles, the three parts.
constexpr std::int64_t panel_lanes = 2 * lanes, step_bytes = 2 * parts * tile_bytes;
// The whole left operand of up to 1024 x 1024 is packed once, into 6 MiB that stay in L3. Blocks of the right one, 512
// deep and 256 wide in 768 KiB of L2, are multiplied with its panels one after the other.
constexpr std::int64_t block_rows = 1024, block_depth = 1024, block_columns = 256, sub_depth = 512;

constexpr std::int64_t steps_of(std::int64_t depth) { return (depth + tile_depth - 1) / tile_depth; }

/// Packed operands of one thread, for as long as it lives.
class buffers {
  static constexpr auto bytes = static_cast<std::size_t>(thread_bytes);
  static constexpr std::int64_t a_bytes = block_rows / panel_lanes * (block_depth / tile_depth) * step_bytes;
  static_assert(a_bytes + block_columns / panel_lanes * (sub_depth / tile_depth) * step_bytes <= thread_bytes);
  struct release {
    void operator()(std::byte *p) const { std::free(p); }
  };
  std::unique_ptr<std::byte[], release> memory;

public:
  /// Allocates and touches the memory unless that is done; huge pages spare the panels' streams walks of page tables.
  bool prepare() {
    if (memory != nullptr)
      return true;
    memory.reset(static_cast<std::byte *>(std::aligned_alloc(std::size_t(2) << 20, bytes)));
    if (memory == nullptr)
      return false;
    madvise(memory.get(), bytes, MADV_HUGEPAGE);
    std::memset(memory.get(), 0, bytes);
    return true;
  }
  std::byte *a() const { return memory.get(); }
  std::byte *b() const { return memory.get() + a_bytes; }
};
thread_local buffers packed;

/// Vectors side by side ("lanes") along a depth.
struct strip {
  const float *data;
  std::int64_t count, depth, lane_stride, depth_stride;
};

WINDLASS_AMX inline __mmask16 first(std::int64_t n) {
  return static_cast<__mmask16>(n >= lanes ? 0xffff : n <= 0 ? 0 : (1u << n) - 1);
}

/// Three vectors of pairs of bf16: the parts of `low` in the low halves, those of `high` in the high ones.
struct split {
  __m512i part[parts];
};

WINDLASS_AMX inline split split_pair(__m512 low, __m512 high) {
  const __m512i upper = _mm512_set1_epi32(static_cast<int>(0xffff0000));
  const auto cut = [upper](__m512 x)
                       WINDLASS_AMX { return _mm512_castsi512_ps(_mm512_and_si512(_mm512_castps_si512(x), upper)); };
  split r;
  for (int p = 0; p < parts; ++p) {
    const __m512i shifted = _mm512_srli_epi32(_mm512_castps_si512(low), 16);
    // (high & upper) | shifted
    r.part[p] = _mm512_ternarylogic_epi32(_mm512_castps_si512(high), upper, shifted, 0xea);
    low = _mm512_sub_ps(low, cut(low));
    high = _mm512_sub_ps(high, cut(high));
  }
  return r;
}

/// One vector of 16 lanes at depth `d`, or of 16 depths of lane `lane`; what is outside of the strip is 0.
WINDLASS_AMX inline __m512 load_lanes(const strip &s, std::int64_t lane, std::int64_t d, __m512 factor) {
  if (d >= s.depth)
    return _mm512_setzero_ps();
  return _mm512_mul_ps(
      factor, _mm512_maskz_loadu_ps(first(s.count - lane), s.data + d * s.depth_stride + lane * s.lane_stride));
}
WINDLASS_AMX inline __m512 load_depths(const strip &s, std::int64_t lane, std::int64_t d, __m512 factor) {
  if (lane >= s.count)
    return _mm512_setzero_ps();
  const float *from = s.data + d * s.depth_stride + lane * s.lane_stride;
  const __mmask16 there = first(s.depth - d);
  if (s.depth_stride == 1)
    return _mm512_mul_ps(factor, _mm512_maskz_loadu_ps(there, from));
  alignas(64) float line[lanes] = {};
  for (std::int64_t i = 0; i < std::min(lanes, s.depth - d); ++i)
    line[i] = from[i * s.depth_stride];
  return _mm512_mul_ps(factor, _mm512_load_ps(line));
}

/// Where a part's two tiles lie in a step: in the order of their use, so that the processor fetches ahead.
template <bool is_left> constexpr std::int64_t place_of(std::int64_t part) {
  return 2 * tile_bytes * (is_left ? parts - 1 - part : part);
}

/// Packs 16 lanes from `lane` on and 32 depths from `d` on into three tiles, times `factor`. Tiles of the left operand
/// have a row for each lane, those of the right one a row for each pair of depths: one is the other's transpose.
template <bool is_left>
WINDLASS_AMX void pack_tile(std::byte *to, const strip &s, std::int64_t lane, std::int64_t d, __m512 factor) {
  const bool goes_by_lanes = s.lane_stride == 1 && s.depth_stride != 1;
  __m512 rows[parts][lanes];
  for (std::int64_t i = 0; i < lanes; ++i) {
    const split pair =
        goes_by_lanes ? split_pair(load_lanes(s, lane, d + i, factor), load_lanes(s, lane, d + lanes + i, factor))
                      : split_pair(load_depths(s, lane + i, d, factor), load_depths(s, lane + i, d + lanes, factor));
    for (int p = 0; p < parts; ++p)
      rows[p][i] = _mm512_castsi512_ps(pair.part[p]);
  }
  for (int p = 0; p < parts; ++p) {
    if (goes_by_lanes == is_left)
      avx512::transpose(rows[p]);
    for (std::int64_t i = 0; i < lanes; ++i)
      _mm512_store_ps(to + place_of<is_left>(p) + i * 64, rows[p][i]);
  }
}

/// Packs a strip into panels, each [depth / 32] steps of two tiles of three parts. Goes along the strip's memory.
template <bool is_left> WINDLASS_AMX void pack(std::byte *to, const strip &s, float factor) {
  const __m512 times = _mm512_set1_ps(factor);
  const bool goes_by_lanes = s.lane_stride == 1 && s.depth_stride != 1;
  const std::int64_t panels = (s.count + panel_lanes - 1) / panel_lanes, steps = steps_of(s.depth);
  for (std::int64_t n = 0; n < panels * steps; ++n) {
    const std::int64_t panel = goes_by_lanes ? n % panels : n / steps, step = goes_by_lanes ? n / panels : n % steps;
    for (std::int64_t half = 0; half < 2; ++half)
      if (const std::int64_t lane = panel * panel_lanes + half * lanes; lane < s.count)
        pack_tile<is_left>(to + (panel * steps + step) * step_bytes + half * tile_bytes, s, lane, step * tile_depth,
                           times);
  }
}

struct alignas(64) tile_settings {
  std::uint8_t palette = 1, start = 0, reserved[14] = {};
  std::uint16_t row_bytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
  std::uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
};
static_assert(sizeof(tile_settings) == 64);

/// The product of two panels, 16 or 32 rows and columns. Tiles 0 to 3 hold results, 4 and 5 tiles of a, 6 and 7 of b;
/// small products come first, and of two neighbours one operand stays.
template <int rows, int columns>
WINDLASS_AMX void multiply_panels(std::int64_t steps, const std::byte *a, const std::byte *b, float *c,
                                  std::int64_t stride) {
  _tile_zero(0);
  _tile_zero(1);
  _tile_zero(2);
  _tile_zero(3);
#define WINDLASS_LOAD_A(part)                                                                                          \
  _tile_loadd(4, a + place_of<true>(part), 64);                                                                        \
  if constexpr (rows == 2)                                                                                             \
  _tile_loadd(5, a + place_of<true>(part) + tile_bytes, 64)
#define WINDLASS_LOAD_B(part)                                                                                          \
  _tile_loadd(6, b + place_of<false>(part), 64);                                                                       \
  if constexpr (columns == 2)                                                                                          \
  _tile_loadd(7, b + place_of<false>(part) + tile_bytes, 64)
#define WINDLASS_MULTIPLY()                                                                                            \
  _tile_dpbf16ps(0, 4, 6);                                                                                             \
  if constexpr (columns == 2)                                                                                          \
    _tile_dpbf16ps(1, 4, 7);                                                                                           \
  if constexpr (rows == 2)                                                                                             \
    _tile_dpbf16ps(2, 5, 6);                                                                                           \
  if constexpr (rows == 2 && columns == 2)                                                                             \
  _tile_dpbf16ps(3, 5, 7)
  for (std::int64_t s = 0; s < steps; ++s) {
    WINDLASS_LOAD_A(2);
    WINDLASS_LOAD_B(0);
    WINDLASS_MULTIPLY();
    WINDLASS_LOAD_A(1);
    WINDLASS_MULTIPLY();
    WINDLASS_LOAD_B(1);
    WINDLASS_MULTIPLY();
    WINDLASS_LOAD_A(0);
    WINDLASS_MULTIPLY();
    WINDLASS_LOAD_B(2);
    WINDLASS_MULTIPLY();
    WINDLASS_LOAD_B(0);
    WINDLASS_MULTIPLY();
    a += step_bytes;
    b += step_bytes;
  }
#undef WINDLASS_LOAD_A
#undef WINDLASS_LOAD_B
#undef WINDLASS_MULTIPLY
  const auto pitch = static_cast<std::size_t>(stride * 4);
  _tile_stored(0, c, pitch);
  if constexpr (columns == 2)
    _tile_stored(1, c + lanes, pitch);
  if constexpr (rows == 2)
    _tile_stored(2, c + lanes * stride, pitch);
  if constexpr (rows == 2 && columns == 2)
    _tile_stored(3, c + lanes * stride + lanes, pitch);
}

/// Adds the product of packed blocks to c, or puts it there. `pitch` is the distance of the panels of a. Sums of one
/// block begin at 0, so that the small products are not lost in large sums.
WINDLASS_AMX void multiply_blocks(const matrix &c, const std::byte *a, std::int64_t pitch, const std::byte *b,
                                  std::int64_t steps, bool adds) {
  for (std::int64_t i = 0; i < c.rows; i += panel_lanes, a += pitch)
    for (std::int64_t j = 0; j < c.columns; j += panel_lanes) {
      const matrix part = c.part(i, j, std::min(panel_lanes, c.rows - i), std::min(panel_lanes, c.columns - j));
      const bool is_high = part.rows > lanes, is_wide = part.columns > lanes, is_dense = part.column_stride == 1;
      const auto multiply = is_high   ? is_wide ? multiply_panels<2, 2> : multiply_panels<2, 1>
                            : is_wide ? multiply_panels<1, 2>
                                      : multiply_panels<1, 1>;
      const std::byte *const right = b + j / panel_lanes * steps * step_bytes;
      if (!adds && is_dense && part.rows % lanes == 0 && part.columns % lanes == 0) {
        multiply(steps, a, right, part.data, part.row_stride);
        continue;
      }
      if (is_dense)
        for (std::int64_t y = 0; y < part.rows; ++y) {
          _mm_prefetch(reinterpret_cast<const char *>(part.data + y * part.row_stride), _MM_HINT_T0);
          _mm_prefetch(reinterpret_cast<const char *>(part.data + y * part.row_stride + part.columns - 1), _MM_HINT_T0);
        }
      alignas(64) float sums[panel_lanes * panel_lanes];
      multiply(steps, a, right, sums, panel_lanes);
      if (!is_dense) {
        for (std::int64_t y = 0; y < part.rows; ++y)
          for (std::int64_t x = 0; x < part.columns; ++x) {
            float &out = part.data[y * part.row_stride + x * part.column_stride];
            out = adds ? out + sums[y * panel_lanes + x] : sums[y * panel_lanes + x];
          }
        continue;
      }
      const __mmask16 left_there = first(part.columns), right_there = first(part.columns - lanes);
      const auto put = [adds](float *to, const float *sum, __mmask16 there) WINDLASS_AMX {
        const __m512 s = _mm512_load_ps(sum);
        _mm512_mask_storeu_ps(to, there, adds ? _mm512_add_ps(_mm512_maskz_loadu_ps(there, to), s) : s);
      };
      for (std::int64_t y = 0; y < part.rows; ++y) {
        float *const to = part.data + y * part.row_stride;
        put(to, sums + y * panel_lanes, left_there);
        if (is_wide)
          put(to + lanes, sums + y * panel_lanes + lanes, right_there);
      }
    }
}

void scale(const matrix &c, float factor) {
  for (std::int64_t i = 0; i < c.rows; ++i)
    for (std::int64_t j = 0; j < c.columns; ++j)
      c.data[i * c.row_stride + j * c.column_stride] *= factor;
}

bool request() {
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
  constexpr unsigned amx_bf16 = 1u << 22, amx_tile = 1u << 24;
  if (__get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx) == 0 || (edx & amx_bf16) == 0 || (edx & amx_tile) == 0)
    return false;
  if (!__builtin_cpu_supports("avx512f") || !__builtin_cpu_supports("avx512bw"))
    return false;
  constexpr long request_permission = 0x1023, tile_data = 18; // ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA
  return syscall(SYS_arch_prctl, request_permission, tile_data) == 0;
}

} // namespace

bool is_supported() {
  static const bool is_there = request();
  return is_there;
}

bool prepare_thread() { return packed.prepare(); }

WINDLASS_AMX void multiply(const matrix &c, const matrix &a, const matrix &b, float alpha, float beta) {
  if (c.column_stride != 1 && c.row_stride == 1)
    return multiply(c.transposed(), b.transposed(), a.transposed(), alpha, beta);
  if (a.columns == 0 || !packed.prepare())
    return gemm_loops(c, a, b, alpha, beta);
  if (beta != 0.0f && beta != 1.0f)
    scale(c, beta);
  static constexpr tile_settings settings;
  _tile_loadconfig(&settings);
  for (std::int64_t row = 0; row < c.rows; row += block_rows)
    for (std::int64_t depth = 0; depth < a.columns; depth += block_depth) {
      const matrix left =
          a.part(row, depth, std::min(block_rows, c.rows - row), std::min(block_depth, a.columns - depth));
      const std::int64_t pitch = steps_of(left.columns) * step_bytes;
      pack<true>(packed.a(), {left.data, left.rows, left.columns, left.row_stride, left.column_stride}, alpha);
      for (std::int64_t column = 0; column < c.columns; column += block_columns)
        for (std::int64_t d = 0; d < left.columns; d += sub_depth) {
          const matrix right = b.part(depth + d, column, std::min(sub_depth, left.columns - d),
                                      std::min(block_columns, c.columns - column));
          pack<false>(packed.b(), {right.data, right.columns, right.rows, right.column_stride, right.row_stride}, 1.0f);
          multiply_blocks(c.part(row, column, left.rows, right.columns), packed.a() + d / tile_depth * step_bytes,
                          pitch, packed.b(), steps_of(right.rows), depth + d > 0 || beta != 0.0f);
        }
    }
  _tile_release();
}

#else

bool is_supported() { return false; }

// Never called where is_supported is false.
bool prepare_thread() { return false; }
void multiply(const matrix &, const matrix &, const matrix &, float, float) {}

#endif

bool pays(std::int64_t rows, std::int64_t columns, std::int64_t depth) {
  return std::min(rows, columns) >= 16 && depth >= 24 && rows * columns * depth >= 1 << 17;
}

} // namespace windlass::rt::cpu::amx
