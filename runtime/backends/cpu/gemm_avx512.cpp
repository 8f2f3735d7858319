#include "gemm_avx512.h"

#include "tile_avx512.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <memory>

#if defined(__x86_64__)
#include <sys/mman.h>
#endif

namespace windlass::rt::cpu::avx512 {

#if defined(__x86_64__)

// The blocked algorithm of Goto and van de Geijn ("Anatomy of high-performance matrix multiplication", 2008): a block
// of b is packed for the L2 cache, blocks of a beside it, and the innermost loop adds products to a tile of c that
// stays in registers. A narrow panel of a stays in L1 while the panels of b stream by.

namespace {

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

/// Size of the blocks that `total` is cut into: the fewest within the limit, about equal, multiples of `unit`.
std::int64_t block_size(std::int64_t total, std::int64_t limit, std::int64_t unit) {
  const std::int64_t blocks = std::max<std::int64_t>(1, (total + limit - 1) / limit);
  return std::min(limit, ((total + blocks - 1) / blocks + unit - 1) / unit * unit);
}

} // namespace

bool prepare_thread() { return packed.prepare(); }
float *thread_memory() { return packed.prepare() ? packed.b() : nullptr; }

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
        multiply_panels<1, lanes>(c.part(row, column, height, right.columns), {packed.a(), tile_rows, lanes * depth},
                                  packed.b(), tile_columns * depth, depth, end);
      }
    }
}

#else

// Never called.
bool prepare_thread() { return false; }
float *thread_memory() { return nullptr; }
void multiply(const matrix &, const matrix &, const matrix &, float, float) {}

#endif

} // namespace windlass::rt::cpu::avx512
