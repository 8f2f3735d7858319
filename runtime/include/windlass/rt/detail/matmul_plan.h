// The GEMM calls that compute a matmul of strided views; shared by the kernel and by the size of its scratch.
#ifndef WINDLASS_RT_DETAIL_MATMUL_PLAN_H
#define WINDLASS_RT_DETAIL_MATMUL_PLAN_H

#include "windlass/rt/status.h"
#include "windlass/rt/view.h"

#include <algorithm>

namespace windlass::rt::detail {

/// A loop over GEMM calls, or a dimension of the GEMM itself: its size, and the distance of one step in each operand,
/// in elements.
struct matmul_dim {
  std::int64_t size = 1, out = 0, a = 0, b = 0;
};

struct matmul_plan {
  matmul_dim m, n, k;             ///< the dimensions of one GEMM
  matmul_dim loops[3 * max_rank]; ///< independent calls: the batch, and dimensions that do not join into m or n
  int loop_count = 0;
  matmul_dim sums[max_rank]; ///< calls that add to the same result
  int sum_count = 0;
  /// The operands that go through scratch: those without a unit stride, and, as f32, a result of 16 bits that is a sum
  /// of calls.
  bool packs_out = false, packs_a = false, packs_b = false;

  std::int64_t calls() const {
    std::int64_t n = 1;
    for (int i = 0; i < loop_count; ++i)
      n *= loops[i].size;
    return n;
  }
  /// Returns the number of GEMM calls in all, including those that add to one result.
  std::int64_t products() const {
    std::int64_t n = calls();
    for (int i = 0; i < sum_count; ++i)
      n *= sums[i].size;
    return n;
  }
  /// Returns the floating-point operations of all products, a multiply-add being two.
  std::int64_t flops() const { return 2 * products() * m.size * n.size * std::max<std::int64_t>(k.size, 1); }
  /// Returns the floats that one thread needs.
  std::int64_t scratch_floats() const {
    return (packs_out ? m.size * n.size : 0) + (packs_a ? m.size * k.size : 0) + (packs_b ? k.size * n.size : 0);
  }
};

/// The offsets in the three operands at which call number `i` of nested loops works.
struct matmul_offsets {
  std::int64_t out = 0, a = 0, b = 0;
  matmul_offsets(const matmul_dim *loops, int count, std::int64_t i) {
    for (int d = count - 1; d >= 0; --d) {
      const std::int64_t at = i % loops[d].size;
      i /= loops[d].size;
      out += at * loops[d].out;
      a += at * loops[d].a;
      b += at * loops[d].b;
    }
  }
};

/// Plans the calls; an internal_error when the sizes of the views do not fit each other.
status plan_matmul(const view &out, const view &a, const view &b, std::int32_t batch_rank, std::int32_t contract_rank,
                   matmul_plan &plan);

} // namespace windlass::rt::detail

#endif
