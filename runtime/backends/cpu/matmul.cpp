#include "team_gemm.h"

#include "windlass/rt/kernels.h"

#include "windlass/rt/detail/matmul_plan.h"

namespace windlass::rt {

namespace {

using cpu::gemm_grid;
using cpu::matrix;
using detail::matmul_offsets;
using detail::matmul_plan;

matrix pack(const matrix &m, float *buffer) {
  for (std::int64_t i = 0; i < m.rows; ++i)
    for (std::int64_t j = 0; j < m.columns; ++j)
      buffer[i * m.columns + j] = m.data[i * m.row_stride + j * m.column_stride];
  return {buffer, m.rows, m.columns, m.columns, 1};
}

struct call {
  matmul_plan plan;
  float *out, *a, *b;
  bool accumulate;
  float *scratch;

  void run(std::int32_t threads) const {
    const std::int64_t calls = plan.calls();
    const std::int64_t sums = plan.products() / std::max<std::int64_t>(calls, 1);
    const std::int32_t parts = detail::part_count(plan.flops(), cpu::gemm_flops_per_thread, threads);
    const std::int64_t pieces = calls % parts == 0 || calls >= 4 * parts ? 1 : parts;
    const gemm_grid cut(plan.m.size, plan.n.size, pieces);
    detail::for_parts(calls * pieces, parts, [&](std::int64_t begin, std::int64_t end, std::int32_t part) {
      float *buffer = scratch == nullptr ? nullptr : scratch + part * plan.scratch_floats();
      for (std::int64_t i = begin; i < end; ++i)
        piece(i / pieces, i % pieces, cut, sums, buffer);
    });
  }

  void piece(std::int64_t number, std::int64_t part, const gemm_grid &cut, std::int64_t sums, float *buffer) const {
    const std::int64_t row = gemm_grid::begin(plan.m.size, cut.rows, part / cut.columns);
    const std::int64_t height = gemm_grid::begin(plan.m.size, cut.rows, part / cut.columns + 1) - row;
    const std::int64_t column = gemm_grid::begin(plan.n.size, cut.columns, part % cut.columns);
    const std::int64_t width = gemm_grid::begin(plan.n.size, cut.columns, part % cut.columns + 1) - column;
    if (height <= 0 || width <= 0)
      return;
    const matmul_offsets at(plan.loops, plan.loop_count, number);
    const matrix target = {out + at.out + row * plan.m.out + column * plan.n.out, height, width, plan.m.out,
                           plan.n.out};
    matrix result = target;
    if (plan.packs_out) {
      result = {buffer, height, width, width, 1};
      buffer += height * width;
    }
    for (std::int64_t s = 0; s < sums; ++s) {
      const matmul_offsets add(plan.sums, plan.sum_count, s);
      matrix left = {a + at.a + add.a + row * plan.m.a, height, plan.k.size, plan.m.a, plan.k.a};
      matrix right = {b + at.b + add.b + column * plan.n.b, plan.k.size, width, plan.k.b, plan.n.b};
      float *next = buffer;
      if (plan.packs_a) {
        left = pack(left, next);
        next += left.rows * left.columns;
      }
      if (plan.packs_b)
        right = pack(right, next);
      const bool adds = s > 0 || (accumulate && !plan.packs_out);
      cpu::gemm(result, left, right, 1.0f, adds ? 1.0f : 0.0f);
    }
    if (!plan.packs_out)
      return;
    for (std::int64_t i = 0; i < height; ++i)
      for (std::int64_t j = 0; j < width; ++j) {
        float &to = target.data[i * target.row_stride + j * target.column_stride];
        to = (accumulate ? to : 0.0f) + result.data[i * width + j];
      }
  }
};

} // namespace

status matmul(stream &s, const view &out, const view &a, const view &b, std::int32_t batch_rank,
              std::int32_t contract_rank, bool accumulate) {
  if (out.type != element_type::f32 || a.type != element_type::f32 || b.type != element_type::f32)
    return internal_error("matmul takes f32 views only");
  call c = {{}, out.as<float>(), a.as<float>(), b.as<float>(), accumulate, nullptr};
  WINDLASS_TRY(detail::plan_matmul(out, a, b, batch_rank, contract_rank, c.plan));
  WINDLASS_TRY(cpu::prepare_gemm());
  if (const std::int64_t floats = c.plan.scratch_floats(); floats > 0) {
    if (s.scratch_bytes() < floats * 4 * s.threads())
      return internal_error("matmul needs " + std::to_string(floats * 4 * s.threads()) +
                            " bytes of scratch, the stream has " + std::to_string(s.scratch_bytes()));
    c.scratch = reinterpret_cast<float *>(s.scratch());
  }
  const work what = {"matmul",
                     c.plan.flops(),
                     bytes_of({out, a, b}),
                     {c.plan.m.size, c.plan.n.size, std::max<std::int64_t>(c.plan.k.size, 1), c.plan.products()}};
  return s.submit(what, [c, threads = s.threads()]() -> status {
    c.run(threads);
    return {};
  });
}

} // namespace windlass::rt
