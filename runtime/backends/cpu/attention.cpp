// Attention by blocks of query rows: scores of a block stay in scratch. Products are GEMM, or where the processor has
// AVX-512 and the heads fit, tiles of packed keys and values.
#include "attention_avx512.h"
#include "gemm.h"
#include "softmax_row.h"

#include "windlass/rt/kernels.h"

#include "windlass/rt/detail/attention_block.h"

#include <string>

namespace windlass::rt {

namespace {

using cpu::matrix;

/// One head of a view [batch, heads, rows, columns].
matrix head_of(const view &v, std::int64_t batch, std::int64_t head) {
  return {v.as<float>() + batch * v.strides[0] + head * v.strides[1], v.sizes[2], v.sizes[3], v.strides[2],
          v.strides[3]};
}

struct shape {
  std::int64_t batch, heads, queries, keys, group;
  bool causal;
  shape(const view &q, const view &k, bool is_causal)
      : batch(q.sizes[0]), heads(q.sizes[1]), queries(q.sizes[2]), keys(k.sizes[2]), group(q.sizes[1] / k.sizes[1]),
        causal(is_causal) {}
  /// Keys that query row `t` sees: those before the result.
  std::int64_t end_of(std::int64_t t) const {
    return causal ? std::clamp<std::int64_t>(t + keys - queries + 1, 0, keys) : keys;
  }
};

status check(const view &q, const view &k, const view &v, const view &mask, const view &out, const view &lse) {
  bool fits = q.rank == 4 && k.rank == 4 && v.rank == 4 && out.rank == 4 && lse.rank == 3;
  for (const view *each : {&q, &k, &v, &out, &lse})
    fits = fits && each->type == element_type::f32;
  fits = fits && k.sizes[1] > 0 && q.sizes[1] % k.sizes[1] == 0 && q.sizes[3] == k.sizes[3] &&
         out.sizes[3] == v.sizes[3] && k.sizes[0] == q.sizes[0] && v.sizes[0] == q.sizes[0] &&
         v.sizes[1] == k.sizes[1] && v.sizes[2] == k.sizes[2];
  for (int d = 0; d < 3 && fits; ++d)
    fits = out.sizes[d] == q.sizes[d] && lse.sizes[d] == q.sizes[d];
  if (fits && !mask.is_absent())
    fits = mask.type == element_type::f32 && mask.rank == 4 && mask.sizes[0] == q.sizes[0] &&
           mask.sizes[1] == q.sizes[1] && mask.sizes[2] == q.sizes[2] && mask.sizes[3] == k.sizes[2];
  if (fits)
    return {};
  return internal_error("attention got views whose types, ranks or sizes do not fit");
}

status check_scratch(const stream &s, std::int64_t needed) {
  if (s.scratch_bytes() >= needed)
    return {};
  return internal_error("attention needs " + std::to_string(needed) + " bytes of scratch, the stream has " +
                        std::to_string(s.scratch_bytes()));
}

using cpu::avx512::attention_head;

/// One head; `mask` may be absent. The gradients' matrices are left empty.
attention_head whole_head(const view &out, const view &lse, const view &q, const view &k, const view &v,
                          const view &mask, double scale, bool causal, std::int64_t batch, std::int64_t head,
                          std::int64_t group) {
  return {head_of(q, batch, head),
          head_of(k, batch, head / group),
          head_of(v, batch, head / group),
          head_of(out, batch, head),
          mask.is_absent() ? matrix{} : head_of(mask, batch, head),
          lse.as<float>() + batch * lse.strides[0] + head * lse.strides[1],
          lse.strides[2],
          static_cast<float>(scale),
          causal,
          {},
          {},
          {},
          {}};
}

/// scores = scale * q k^T + mask for `rows` query rows from `first` on, over the keys that the last of them sees.
void block_scores(float *scores, const shape &of, const attention_head &head, std::int64_t first, std::int64_t rows,
                  std::int64_t seen) {
  cpu::gemm({scores, rows, seen, of.keys, 1}, head.q.part(first, 0, rows, head.q.columns),
            head.k.part(0, 0, seen, head.k.columns).transposed(), head.scale, 0.0f);
  if (head.mask.data == nullptr)
    return;
  for (std::int64_t r = 0; r < rows; ++r) {
    const float *m = head.mask.data + (first + r) * head.mask.row_stride;
    float *row = scores + r * of.keys;
    cpu::with_stride(head.mask.column_stride, [&](auto stride) {
      WINDLASS_SIMD
      for (std::int64_t j = 0; j < seen; ++j)
        row[j] += m[j * stride];
    });
  }
}

/// out and lse of `rows` query rows from `first` on; `scores` has room for them.
void attend_block(float *scores, const shape &of, const attention_head &head, std::int64_t first, std::int64_t rows) {
  const std::int64_t seen = of.end_of(first + rows - 1);
  const matrix result = head.out.part(first, 0, rows, head.out.columns);
  block_scores(scores, of, head, first, rows, seen);
  // The rows stay unnormalised until after the product, whose rows are shorter.
  float factors[detail::attention_block];
  for (std::int64_t r = 0; r < rows; ++r) {
    float *row = scores + r * of.keys;
    const std::int64_t n = of.end_of(first + r);
    float sum = 0;
    const float total = cpu::exp_row(row, n, sum);
    head.lse[(first + r) * head.lse_stride] = total;
    factors[r] = total == -std::numeric_limits<float>::infinity() ? 0.0f : 1.0f / sum;
    for (std::int64_t j = n; j < seen; ++j)
      row[j] = 0;
  }
  cpu::gemm(result, {scores, rows, seen, of.keys, 1}, head.v.part(0, 0, seen, head.v.columns), 1.0f, 0.0f);
  for (std::int64_t r = 0; r < rows; ++r) {
    float *row = result.data + r * result.row_stride;
    cpu::with_stride(result.column_stride, [&](auto stride) {
      WINDLASS_SIMD
      for (std::int64_t e = 0; e < result.columns; ++e)
        row[e * stride] *= factors[r];
    });
  }
}

/// The gradient of one head by the kernel for packed operands. The first head of a group overwrites the gradients of
/// its keys and values, and the others add to them. `scores` has room for two blocks.
void packed_head_grad(const attention_head &head, const shape &of, bool is_first, float *scores) {
  if (is_first)
    cpu::avx512::pack_attention(head, true);
  constexpr std::int64_t step = cpu::avx512::attention_rows;
  const std::int64_t last = (of.queries - 1) / step * step;
  // The last block first: it sees all keys, so that it can overwrite their gradients.
  for (std::int64_t first = last; first >= 0; first -= step)
    cpu::avx512::attention_grad_block(head, first, is_first && first == last, scores);
}

/// Turns the scores of a block's rows into probabilities, and the gradients of the probabilities into those of the
/// scores. Keys from `seen` on are not read.
void block_slopes(float *p, float *dp, const shape &of, const attention_head &head, std::int64_t first,
                  std::int64_t rows, std::int64_t seen) {
  for (std::int64_t r = 0; r < rows; ++r) {
    const float *o = head.out.data + (first + r) * head.out.row_stride;
    const float *d = head.dout.data + (first + r) * head.dout.row_stride;
    float delta = 0;
    for (std::int64_t e = 0; e < head.out.columns; ++e)
      delta += o[e * head.out.column_stride] * d[e * head.dout.column_stride];
    const float total = head.lse[(first + r) * head.lse_stride];
    const std::int64_t n = total == -std::numeric_limits<float>::infinity() ? 0 : of.end_of(first + r);
    float *p_row = p + r * of.keys, *dp_row = dp + r * of.keys;
    WINDLASS_SIMD
    for (std::int64_t j = 0; j < n; ++j) {
      p_row[j] = windlass::scalar::exp(p_row[j] - total);
      dp_row[j] = p_row[j] * (dp_row[j] - delta);
    }
    for (std::int64_t j = n; j < seen; ++j)
      p_row[j] = dp_row[j] = 0;
  }
}

/// As packed_head_grad, for heads of any size.
void head_grad(const attention_head &head, const shape &of, bool is_first, float *scores) {
  constexpr std::int64_t block = detail::attention_block;
  float *p = scores, *dp = p + std::min(block, of.queries) * of.keys;
  const std::int64_t blocks = (of.queries + block - 1) / block;
  float beta = is_first ? 0.0f : 1.0f;
  // The last block first: it sees all keys, so that it can overwrite their gradients.
  for (std::int64_t b = blocks - 1; b >= 0; --b) {
    const std::int64_t first = b * block, rows = std::min(block, of.queries - first);
    const std::int64_t seen = of.end_of(first + rows - 1);
    block_scores(p, of, head, first, rows, seen);
    const matrix dout_block = head.dout.part(first, 0, rows, head.dout.columns);
    cpu::gemm({dp, rows, seen, of.keys, 1}, dout_block, head.v.part(0, 0, seen, head.v.columns).transposed(), 1.0f,
              0.0f);
    block_slopes(p, dp, of, head, first, rows, seen);
    const matrix weights = {p, rows, seen, of.keys, 1}, slopes = {dp, rows, seen, of.keys, 1};
    cpu::gemm(head.dq.part(first, 0, rows, head.q.columns), slopes, head.k.part(0, 0, seen, head.k.columns), head.scale,
              0.0f);
    cpu::gemm(head.dk.part(0, 0, seen, head.k.columns), slopes.transposed(),
              head.q.part(first, 0, rows, head.q.columns), head.scale, beta);
    cpu::gemm(head.dv.part(0, 0, seen, head.v.columns), weights.transposed(), dout_block, 1.0f, beta);
    beta = 1.0f;
  }
}

/// `products` matrix products over the pairs of a query and a key that it sees; the gradient makes the scores again.
work attention_work(const char *name, const view &q, const view &k, bool causal, std::int64_t products,
                    std::int64_t bytes) {
  const shape of(q, k, causal);
  std::int64_t pairs = 0;
  for (std::int64_t t = 0; t < of.queries; ++t)
    pairs += of.end_of(t);
  return {name,
          2 * products * of.batch * of.heads * pairs * q.sizes[3],
          bytes,
          {of.batch, of.heads, of.queries, q.sizes[3]}};
}

} // namespace

status attention(stream &s, const view &out, const view &lse, const view &q, const view &k, const view &v,
                 const view &mask, double scale, bool causal) {
  WINDLASS_TRY(check(q, k, v, mask, out, lse));
  WINDLASS_TRY(check_scratch(s, attention_scratch_bytes(q, k, s.threads())));
  WINDLASS_TRY(cpu::prepare_gemm());
  return s.submit(attention_work("attention", q, k, causal, 2, bytes_of({out, lse, q, k, v, mask})),
                  [=, threads = s.threads(), scratch = reinterpret_cast<float *>(s.scratch())]() -> status {
                    const shape of(q, k, causal);
                    constexpr std::int64_t block = detail::attention_block;
                    const std::int64_t blocks = (of.queries + block - 1) / block, items = of.batch * of.heads * blocks;
                    const std::int64_t work = block * of.keys * (q.sizes[3] + v.sizes[3]);
                    const std::int32_t parts = detail::part_count(items, (1 << 18) / (work + 1) + 1, threads);
                    detail::for_parts(items, parts, [&](std::int64_t begin, std::int64_t end, std::int32_t part) {
                      float *scores = scratch + part * std::min(block, of.queries) * of.keys;
                      const bool is_packed =
                          cpu::avx512::can_attend(of.queries, of.keys, q.sizes[3], v.sizes[3], false);
                      for (std::int64_t item = begin; item < end; ++item) {
                        const std::int64_t batch = item / blocks / of.heads, head = item / blocks % of.heads;
                        const std::int64_t first = item % blocks * block, rows = std::min(block, of.queries - first);
                        const attention_head all =
                            whole_head(out, lse, q, k, v, mask, scale, causal, batch, head, of.group);
                        if (!is_packed) {
                          attend_block(scores, of, all, first, rows);
                          continue;
                        }
                        if (item == begin || item % (blocks * of.group) == 0)
                          cpu::avx512::pack_attention(all, false);
                        for (std::int64_t r = 0; r < rows; r += cpu::avx512::attention_rows)
                          cpu::avx512::attention_block(all, first + r, scores);
                      }
                    });
                    return {};
                  });
}

status attention_grad(stream &s, const view &dq, const view &dk, const view &dv, const view &dout, const view &q,
                      const view &k, const view &v, const view &mask, const view &out, const view &lse, double scale,
                      bool causal) {
  WINDLASS_TRY(check(q, k, v, mask, out, lse));
  WINDLASS_TRY(check(dq, dk, dv, mask, dout, lse));
  WINDLASS_TRY(check_scratch(s, attention_grad_scratch_bytes(q, k, s.threads())));
  WINDLASS_TRY(cpu::prepare_gemm());
  return s.submit(
      attention_work("attention_grad", q, k, causal, 5, bytes_of({dq, dk, dv, dout, q, k, v, mask, out, lse})),
      [=, threads = s.threads(), scratch = reinterpret_cast<float *>(s.scratch())]() -> status {
        const shape of(q, k, causal);
        const std::int64_t kv_heads = k.sizes[1];
        // A task is a head of keys, whose gradients add up over its queries in a fixed order.
        detail::parallel(threads, of.batch * kv_heads, 1, [&](std::int64_t begin, std::int64_t end, std::int32_t part) {
          float *scores = scratch + part * 2 * std::min(detail::attention_block, of.queries) * of.keys;
          const bool is_packed = cpu::avx512::can_attend(of.queries, of.keys, q.sizes[3], v.sizes[3], true);
          for (std::int64_t item = begin; item < end; ++item) {
            const std::int64_t batch = item / kv_heads, kv = item % kv_heads;
            for (std::int64_t head = kv * of.group; head < (kv + 1) * of.group; ++head) {
              attention_head all = whole_head(out, lse, q, k, v, mask, scale, causal, batch, head, of.group);
              all.dout = head_of(dout, batch, head), all.dq = head_of(dq, batch, head);
              all.dk = head_of(dk, batch, kv), all.dv = head_of(dv, batch, kv);
              (is_packed ? packed_head_grad : head_grad)(all, of, head == kv * of.group, scores);
            }
          }
        });
        return {};
      });
}

} // namespace windlass::rt
