// The scratch that kernels need. The compiler evaluates these too: they read sizes and strides only, never data.
#include "windlass/rt/kernels.h"

#include "windlass/rt/detail/attention_block.h"
#include "windlass/rt/detail/expert_plan.h"
#include "windlass/rt/detail/matmul_plan.h"
#include "windlass/rt/detail/window_plan.h"

#include <algorithm>

namespace windlass::rt {

std::int64_t matmul_scratch_bytes(const view &out, const view &a, const view &b, std::int32_t batch_rank,
                                  std::int32_t contract_rank) {
  detail::matmul_plan plan;
  if (!detail::plan_matmul(out, a, b, batch_rank, contract_rank, plan).is_ok())
    return 0;
  return plan.scratch_floats() * 4;
}

std::int64_t convolution_scratch_bytes(const view &y, const view &w, std::int32_t threads) {
  std::int64_t plane = 1, depth = 1;
  for (int d = 2; d < y.rank; ++d)
    plane *= y.sizes[d];
  for (int d = 1; d < w.rank; ++d)
    depth *= w.sizes[d];
  return std::min(plane, detail::convolution_tile) * std::min(depth, detail::convolution_tile) * 4 * threads;
}

std::int64_t norm_grad_scratch_bytes(const view &x, std::int32_t threads) {
  return x.rank == 0 ? 0 : x.sizes[x.rank - 1] * 2 * 8 * threads;
}

std::int64_t attention_scratch_bytes(const view &q, const view &k, std::int32_t threads) {
  return std::min(detail::attention_block, q.sizes[2]) * k.sizes[2] * 4 * threads;
}

std::int64_t attention_grad_scratch_bytes(const view &q, const view &k, std::int32_t threads) {
  return 2 * attention_scratch_bytes(q, k, threads);
}

std::int64_t experts_scratch_bytes(const view &x, const view &choices, const view &up, const view &down,
                                   const view &gate, const expert_layer &of, std::int32_t threads) {
  detail::expert_plan plan;
  return detail::plan_experts(x, choices, up, down, gate, {}, of, plan)
             ? threads * plan.scratch_bytes(plan.forward_floats())
             : 0;
}

std::int64_t experts_grad_scratch_bytes(const view &x, const view &choices, const view &up, const view &down,
                                        const view &gate, const expert_layer &of, std::int32_t threads) {
  detail::expert_plan plan;
  return detail::plan_experts(x, choices, up, down, gate, {}, of, plan)
             ? threads * plan.scratch_bytes(plan.gradient_floats())
             : 0;
}

} // namespace windlass::rt
