// What the kernels of attention share.
#ifndef WINDLASS_BACKENDS_CUDA_ATTENTION_PARTS_H
#define WINDLASS_BACKENDS_CUDA_ATTENTION_PARTS_H

#include "kernel.h"

namespace windlass::rt::cuda {

/// A view [batch, heads, rows, columns].
struct heads {
  operand of;
  std::int64_t strides[4];
  heads(const view &v) : of(v) { // NOLINT: as operand
    for (int d = 0; d < 4; ++d)
      strides[d] = v.strides[d];
  }
  WINDLASS_FN std::int64_t at(std::int64_t batch, std::int64_t head, std::int64_t row, std::int64_t column) const {
    return batch * strides[0] + head * strides[1] + row * strides[2] + column * strides[3];
  }
  WINDLASS_FN float get(std::int64_t batch, std::int64_t head, std::int64_t row, std::int64_t column) const {
    return of.get(at(batch, head, row, column));
  }
  WINDLASS_FN void set(std::int64_t batch, std::int64_t head, std::int64_t row, std::int64_t column, float x) const {
    of.set(at(batch, head, row, column), x);
  }
};

struct attention_sizes {
  std::int64_t batch, heads, kv_heads, queries, keys, depth, value_depth;
  float scale;
  bool causal;
  WINDLASS_FN bool sees(std::int64_t query, std::int64_t key) const {
    return query < queries && key < keys && (!causal || key <= query + (keys - queries));
  }
  /// Keys that query `t` sees: those before the result.
  WINDLASS_FN std::int64_t end_of(std::int64_t t) const {
    const std::int64_t end = causal ? t + (keys - queries) + 1 : keys;
    return end < 0 ? 0 : end > keys ? keys : end;
  }
};

/// Sum over a row of out * dout, the same on every lane.
__device__ inline float delta_of(const heads &out, const heads &dout, std::int64_t batch, std::int64_t head,
                                 std::int64_t row, std::int64_t depth, int lane) {
  float sum = 0;
  for (std::int64_t e = lane; e < depth; e += warp_lanes)
    sum += out.get(batch, head, row, e) * dout.get(batch, head, row, e);
  return reduce_warp<add_values>(sum);
}

} // namespace windlass::rt::cuda

#endif
