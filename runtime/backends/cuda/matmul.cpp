#include "kernel.h"
#include "products.h"

#include "windlass/rt/detail/matmul_plan.h"

#include <algorithm>
#include <limits>
#include <optional>

namespace windlass::rt {

namespace cuda {

bool is_transposed(const gemm_call &call) {
  return call.c.row_stride != 1 || (call.m == 1 && call.c.column_stride == 1);
}

/// A matrix whose rows lie in a row is, with columns in a row, its own transpose: so the library computes the transpose
/// of the product where the result's rows lie in a row.
column_gemm as_columns(const gemm_call &call) {
  const bool is_swapped = is_transposed(call);
  const auto stored = [is_swapped](const gemm_call::matrix &of, std::int64_t rows, std::int64_t columns) {
    std::int64_t row_stride = of.row_stride, column_stride = of.column_stride;
    if (is_swapped) {
      std::swap(rows, columns);
      std::swap(row_stride, column_stride);
    }
    column_gemm::matrix out = {of.data, of.type, false, rows, columns, 0, of.batch_stride};
    // Lines of columns: the row stride is 1, and the distance of columns is the leading dimension.
    const bool fits = (rows == 1 || row_stride == 1) && (columns == 1 || column_stride >= rows);
    if (!fits) {
      out.is_transposed = true;
      std::swap(out.rows, out.columns);
      std::swap(row_stride, column_stride);
    }
    out.leading = std::max(out.columns == 1 ? out.rows : column_stride, std::max<std::int64_t>(out.rows, 1));
    return out;
  };
  column_gemm out;
  const gemm_call::matrix &first = is_swapped ? call.b : call.a, &second = is_swapped ? call.a : call.b;
  out.m = is_swapped ? call.n : call.m;
  out.n = is_swapped ? call.m : call.n;
  out.k = call.k;
  out.rounds_to_tf32 = call.rounds_to_tf32;
  out.x = is_swapped ? stored(first, call.k, call.n) : stored(first, call.m, call.k);
  out.y = is_swapped ? stored(second, call.m, call.k) : stored(second, call.k, call.n);
  out.d = stored(call.c, call.m, call.n);
  out.batch = call.batch;
  out.beta = call.beta;
  return out;
}

namespace {

using detail::matmul_dim;
using detail::matmul_offsets;
using detail::matmul_plan;

/// dense[i, j] = from[i * row_stride + j * column_stride], or the other way round and added.
__global__ void pack_matrix(operand dense, operand strided, std::int64_t rows, std::int64_t columns,
                            std::int64_t row_stride, std::int64_t column_stride) {
  for (std::int64_t i = grid_thread(); i < rows * columns; i += grid_threads())
    dense.set(i, strided.get(i / columns * row_stride + i % columns * column_stride));
}
__global__ void unpack_matrix(operand strided, operand dense, std::int64_t rows, std::int64_t columns,
                              std::int64_t row_stride, std::int64_t column_stride, bool adds) {
  for (std::int64_t i = grid_thread(); i < rows * columns; i += grid_threads()) {
    const std::int64_t at = i / columns * row_stride + i % columns * column_stride;
    strided.set(at, (adds ? strided.get(at) : 0.0f) + dense.get(i));
  }
}

/// One of m, n and k.
using extent_member = std::int64_t gemm_call::*;

/// The part of a product from `begin` on, of `size`, along one of its extents.
gemm_call part_of(const gemm_call &call, extent_member extent, std::int64_t begin, std::int64_t size) {
  gemm_call part = call;
  part.*extent = size;
  const auto move = [begin](gemm_call::matrix &of, std::int64_t stride) {
    of.data += begin * stride * size_of(of.type);
  };
  if (extent != &gemm_call::n)
    move(part.a, extent == &gemm_call::m ? call.a.row_stride : call.a.column_stride);
  if (extent != &gemm_call::m)
    move(part.b, extent == &gemm_call::n ? call.b.column_stride : call.b.row_stride);
  if (extent != &gemm_call::k)
    move(part.c, extent == &gemm_call::m ? call.c.row_stride : call.c.column_stride);
  else if (begin > 0)
    part.beta = 1;
  return part;
}

/// Where an extent is cut in two, inside of it.
struct cut {
  extent_member extent;
  std::int64_t at;
};
/// Returns the first cut of a product that libraries should not compute whole.
std::optional<cut> find_cut(const gemm_call &call) {
  constexpr std::int64_t pack = 8, large = 512;
  const struct {
    extent_member extent;
    std::int64_t stride; ///< the larger of its strides in the two matrices
  } extents[] = {{&gemm_call::m, std::max(call.a.row_stride, call.c.row_stride)},
                 {&gemm_call::n, std::max(call.b.column_stride, call.c.column_stride)},
                 {&gemm_call::k, std::max(call.a.column_stride, call.b.row_stride)}};
  // Some of their kernels count elements in 32 bits.
  for (const auto &[extent, stride] : extents)
    if (call.*extent > pack && (call.*extent - 1) * stride > std::numeric_limits<std::int32_t>::max())
      return cut{extent, (call.*extent / 2 + pack - 1) / pack * pack};
  // Products of 16 bits are several times slower where a large extent is no multiple of 8. On an H200 the scores of
  // 16384 tokens and 50257 words from 768 columns take 13.3 ms, those of 50256 words 1.7 ms.
  for (const auto &[extent, stride] : extents)
    if (size_of(call.a.type) == 2 && call.*extent >= large && call.*extent % pack != 0)
      return cut{extent, call.*extent / pack * pack};
  return std::nullopt;
}

/// Computes a product in parts that libraries are fast and right at. Where what is contracted is cut, a result of 16
/// bits is rounded once more.
status run_in_parts(stream &s, const gemm_call &call, std::byte *workspace, std::int64_t workspace_bytes) {
  const std::optional<cut> found = find_cut(call);
  if (!found)
    return device_stream_of(s).gemms().run(s, as_columns(call), workspace, workspace_bytes);
  const auto [extent, at] = *found;
  WINDLASS_TRY(run_in_parts(s, part_of(call, extent, 0, at), workspace, workspace_bytes));
  return run_in_parts(s, part_of(call, extent, at, call.*extent - at), workspace, workspace_bytes);
}

struct product {
  matmul_plan plan;
  view out, a, b;
  bool accumulate;

  status run(stream &s) const {
    // The longest loop whose calls are alike in everything but where they work is one batched call.
    matmul_dim loops[3 * max_rank], batch;
    int count = 0, batched = -1;
    const bool packs = plan.packs_out || plan.packs_a || plan.packs_b;
    for (int d = 0; d < plan.loop_count && !packs; ++d)
      if (batched < 0 || plan.loops[d].size > plan.loops[batched].size)
        batched = d;
    for (int d = 0; d < plan.loop_count; ++d)
      if (d == batched)
        batch = plan.loops[d];
      else
        loops[count++] = plan.loops[d];
    std::int64_t calls = 1, sums = 1;
    for (int d = 0; d < count; ++d)
      calls *= loops[d].size;
    for (int d = 0; d < plan.sum_count; ++d)
      sums *= plan.sums[d].size;
    for (std::int64_t i = 0; i < calls; ++i)
      WINDLASS_TRY(one(s, batch, matmul_offsets(loops, count, i), sums));
    return {};
  }

  static std::byte *place(const view &v, std::int64_t offset) { return v.data + offset * size_of(v.type); }

  /// The first of the products that make a result.
  gemm_call call_at(const matmul_dim &batch, const matmul_offsets &at) const {
    const matmul_dim &m = plan.m, &n = plan.n, &k = plan.k;
    return {{place(a, at.a), a.type, m.a, k.a, batch.a},
            {place(b, at.b), b.type, k.b, n.b, batch.b},
            {place(out, at.out), out.type, m.out, n.out, batch.out},
            m.size,
            n.size,
            std::max<std::int64_t>(k.size, 1),
            batch.size,
            accumulate ? 1.0f : 0.0f};
  }

  /// A result, which is the sum of that many products.
  status one(stream &s, const matmul_dim &batch, const matmul_offsets &at, std::int64_t sums) const {
    std::byte *free = s.scratch(), *const end = s.scratch() + s.scratch_bytes();
    gemm_call call = call_at(batch, at);
    const auto dense = [&](gemm_call::matrix &of, std::int64_t rows, std::int64_t columns, element_type type) {
      of.data = free;
      of.type = type;
      of.row_stride = columns;
      of.column_stride = 1;
      free += (rows * columns * size_of(type) + 255) / 256 * 256;
      return free <= end;
    };
    call.rounds_to_tf32 = s.multiplies_tf32() && a.type == element_type::f32;
    gemm_call::matrix from_a = call.a, from_b = call.b;
    const gemm_call::matrix to = call.c;
    bool fits = true;
    if (plan.packs_a)
      fits = fits && dense(call.a, call.m, call.k, a.type);
    if (plan.packs_b)
      fits = fits && dense(call.b, call.k, call.n, b.type);
    if (plan.packs_out)
      fits = fits && dense(call.c, call.m, call.n, element_type::f32);
    if (!fits)
      return internal_error("matmul needs " + std::to_string(free - s.scratch()) +
                            " bytes of scratch, the stream has " + std::to_string(s.scratch_bytes()));
    const auto pack = [&](const gemm_call::matrix &into, const gemm_call::matrix &from, std::int64_t rows,
                          std::int64_t columns) {
      return launch(s, blocks_for(rows * columns), block_threads, pack_matrix, operand(into.data, into.type),
                    operand(from.data, from.type), rows, columns, from.row_stride, from.column_stride);
    };
    for (std::int64_t j = 0; j < sums; ++j) {
      const matmul_offsets add(plan.sums, plan.sum_count, j);
      from_a.data = place(a, at.a + add.a);
      from_b.data = place(b, at.b + add.b);
      if (plan.packs_a)
        WINDLASS_TRY(pack(call.a, from_a, call.m, call.k));
      else
        call.a.data = from_a.data;
      if (plan.packs_b)
        WINDLASS_TRY(pack(call.b, from_b, call.k, call.n));
      else
        call.b.data = from_b.data;
      call.beta = j > 0 || (accumulate && !plan.packs_out) ? 1.0f : 0.0f;
      WINDLASS_TRY(run_in_parts(s, call, free, end - free));
    }
    if (!plan.packs_out)
      return {};
    return launch(s, blocks_for(call.m * call.n), block_threads, unpack_matrix, operand(to.data, to.type),
                  operand(call.c.data, call.c.type), call.m, call.n, to.row_stride, to.column_stride, accumulate);
  }
};

bool fit(const view &out, const view &a, const view &b) {
  return are_real({out, a, b}) && a.type == b.type && (out.type == a.type || out.type == element_type::f32);
}

} // namespace

bool as_one_call(const view &out, const view &a, const view &b, std::int32_t contract_rank, bool accumulate,
                 gemm_call &call) {
  product c = {{}, out, a, b, accumulate};
  const matmul_plan &plan = c.plan;
  if (!fit(out, a, b) || !detail::plan_matmul(out, a, b, 0, contract_rank, c.plan).is_ok() || out.elements() == 0 ||
      a.elements() == 0 || plan.loop_count + plan.sum_count > 0 || plan.packs_out || plan.packs_a || plan.packs_b)
    return false;
  call = c.call_at({}, matmul_offsets(nullptr, 0, 0));
  return true;
}

} // namespace cuda

status matmul(stream &s, const view &out, const view &a, const view &b, std::int32_t batch_rank,
              std::int32_t contract_rank, bool accumulate) {
  if (!cuda::fit(out, a, b))
    return internal_error("matmul takes two operands of one floating-point type, and gives that or f32");
  cuda::product c = {{}, out, a, b, accumulate};
  WINDLASS_TRY(detail::plan_matmul(out, a, b, batch_rank, contract_rank, c.plan));
  if (out.elements() == 0 || a.elements() == 0)
    return accumulate ? ok_status() : fill(s, out, 0);
  const work what = {"matmul",
                     c.plan.flops(),
                     bytes_of({out, a, b}),
                     {c.plan.m.size, c.plan.n.size, std::max<std::int64_t>(c.plan.k.size, 1), c.plan.products()}};
  return s.submit(what, [c, &s]() -> status { return c.run(s); });
}

} // namespace windlass::rt
