#include "windlass/rt/detail/matmul_plan.h"

namespace windlass::rt::detail {

namespace {

struct dim_list {
  matmul_dim dims[2 * max_rank];
  int count = 0;

  /// Appends `d`, joining it with the last one where every operand steps through both alike.
  void push(const matmul_dim &d) {
    if (d.size == 1)
      return;
    if (count > 0) {
      matmul_dim &last = dims[count - 1];
      if (last.out == d.out * d.size && last.a == d.a * d.size && last.b == d.b * d.size) {
        last = {last.size * d.size, d.out, d.a, d.b};
        return;
      }
    }
    dims[count++] = d;
  }
};

bool is_usable(std::int64_t rows, std::int64_t row_stride, std::int64_t columns, std::int64_t column_stride) {
  const auto fits = [](std::int64_t minor, std::int64_t minor_stride, std::int64_t major, std::int64_t major_stride) {
    return (minor == 1 || minor_stride == 1) && (major == 1 || major_stride >= minor);
  };
  return fits(rows, row_stride, columns, column_stride) || fits(columns, column_stride, rows, row_stride);
}

} // namespace

status plan_matmul(const view &out, const view &a, const view &b, std::int32_t batch_rank, std::int32_t contract_rank,
                   matmul_plan &plan) {
  const int rows = a.rank - batch_rank - contract_rank, columns = b.rank - batch_rank - contract_rank;
  if (batch_rank < 0 || contract_rank < 0 || rows < 0 || columns < 0 || out.rank != batch_rank + rows + columns)
    return internal_error("matmul got views whose ranks do not fit its batch and contracted dimensions");
  plan = matmul_plan();
  dim_list batch, m, n, k;
  bool fits = true;
  for (int d = 0; d < batch_rank; ++d) {
    fits = fits && a.sizes[d] == out.sizes[d] && b.sizes[d] == out.sizes[d];
    const matmul_dim dim = {out.sizes[d], out.strides[d], a.strides[d], b.strides[d]};
    // A batch over which one operand repeats is more rows or columns of the other.
    (dim.b == 0 && dim.a != 0 ? m : dim.a == 0 && dim.b != 0 ? n : batch).push(dim);
  }
  for (int d = 0; d < rows; ++d) {
    fits = fits && a.sizes[batch_rank + d] == out.sizes[batch_rank + d];
    m.push({out.sizes[batch_rank + d], out.strides[batch_rank + d], a.strides[batch_rank + d], 0});
  }
  for (int d = 0; d < columns; ++d) {
    const int in_b = batch_rank + contract_rank + d, in_out = batch_rank + rows + d;
    fits = fits && b.sizes[in_b] == out.sizes[in_out];
    n.push({out.sizes[in_out], out.strides[in_out], 0, b.strides[in_b]});
  }
  for (int d = 0; d < contract_rank; ++d) {
    const int in_a = batch_rank + rows + d, in_b = batch_rank + d;
    fits = fits && a.sizes[in_a] == b.sizes[in_b];
    k.push({a.sizes[in_a], 0, a.strides[in_a], b.strides[in_b]});
  }
  if (!fits)
    return internal_error("matmul got views whose sizes disagree");

  // In each group, one dimension enters the GEMM and the others are loops: those for which no operand needs packing,
  // and among these the largest GEMM.
  std::int64_t best = -1;
  int best_m = 0, best_n = 0, best_k = 0;
  const auto at = [](const dim_list &list, int i) { return list.count == 0 ? matmul_dim() : list.dims[i]; };
  for (int i = 0; i < (m.count > 0 ? m.count : 1); ++i)
    for (int j = 0; j < (n.count > 0 ? n.count : 1); ++j)
      for (int l = 0; l < (k.count > 0 ? k.count : 1); ++l) {
        const matmul_dim dm = at(m, i), dn = at(n, j), dk = at(k, l);
        const bool usable_out = is_usable(dm.size, dm.out, dn.size, dn.out);
        const bool usable_a = is_usable(dm.size, dm.a, dk.size, dk.a);
        const bool usable_b = is_usable(dk.size, dk.b, dn.size, dn.b);
        const std::int64_t usable = usable_out + usable_a + usable_b;
        const std::int64_t volume = dm.size * dn.size * dk.size;
        const std::int64_t score = usable * (std::int64_t(1) << 60) / 4 + (volume >> 4);
        if (score <= best)
          continue;
        best = score;
        best_m = i;
        best_n = j;
        best_k = l;
        plan.m = dm;
        plan.n = dn;
        plan.k = dk;
        plan.packs_out = !usable_out;
        plan.packs_a = !usable_a;
        plan.packs_b = !usable_b;
      }
  for (int i = 0; i < batch.count; ++i)
    plan.loops[plan.loop_count++] = batch.dims[i];
  for (int i = 0; i < m.count; ++i)
    if (i != best_m)
      plan.loops[plan.loop_count++] = m.dims[i];
  for (int i = 0; i < n.count; ++i)
    if (i != best_n)
      plan.loops[plan.loop_count++] = n.dims[i];
  for (int i = 0; i < k.count; ++i)
    if (i != best_k)
      plan.sums[plan.sum_count++] = k.dims[i];
  // Several products are added up in f32 before they become 16 bits.
  if (plan.sum_count > 0 && (out.type == element_type::bf16 || out.type == element_type::f16))
    plan.packs_out = true;
  return {};
}

} // namespace windlass::rt::detail
