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

float *row_value(const view &v, std::int64_t batch, std::int64_t head, std::int64_t row) {
  return v.as<float>() + batch * v.strides[0] + head * v.strides[1] + row * v.strides[2];
}

/// A view [batch, heads, queries, keys] or nothing.
matrix mask_of(const view &mask, std::int64_t batch, std::int64_t head) {
  return mask.is_absent() ? matrix{} : head_of(mask, batch, head);
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

/// scores = scale * q k^T + mask for `rows` query rows from `first` on, over the keys that the last of them sees.
void block_scores(float *scores, const shape &of, const matrix &q, const matrix &k, const view &mask,
                  std::int64_t batch, std::int64_t head, std::int64_t first, std::int64_t rows, std::int64_t seen,
                  double scale) {
  cpu::gemm({scores, rows, seen, of.keys, 1}, q.part(first, 0, rows, q.columns),
            k.part(0, 0, seen, k.columns).transposed(), static_cast<float>(scale), 0.0f);
  if (mask.is_absent())
    return;
  for (std::int64_t r = 0; r < rows; ++r) {
    const float *m = row_value(mask, batch, head, first + r);
    float *row = scores + r * of.keys;
    cpu::with_stride(mask.strides[3], [&](auto stride) {
      WINDLASS_SIMD
      for (std::int64_t j = 0; j < seen; ++j)
        row[j] += m[j * stride];
    });
  }
}

cpu::avx512::attention_head whole_head(const view &out, const view &lse, const view &q, const view &k, const view &v,
                                       const view &mask, double scale, bool causal, std::int64_t batch,
                                       std::int64_t head, std::int64_t group) {
  return {head_of(q, batch, head),
          head_of(k, batch, head / group),
          head_of(v, batch, head / group),
          head_of(out, batch, head),
          mask_of(mask, batch, head),
          row_value(lse, batch, head, 0),
          lse.strides[2],
          static_cast<float>(scale),
          causal,
          {},
          {},
          {},
          {}};
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
                        if (is_packed) {
                          const cpu::avx512::attention_head all =
                              whole_head(out, lse, q, k, v, mask, scale, causal, batch, head, of.group);
                          if (item == begin || item % (blocks * of.group) == 0)
                            cpu::avx512::pack_attention(all, false);
                          for (std::int64_t r = 0; r < rows; r += cpu::avx512::attention_rows)
                            cpu::avx512::attention_block(all, first + r, scores);
                          continue;
                        }
                        const std::int64_t seen = of.end_of(first + rows - 1);
                        const matrix result = head_of(out, batch, head).part(first, 0, rows, v.sizes[3]);
                        block_scores(scores, of, head_of(q, batch, head), head_of(k, batch, head / of.group), mask,
                                     batch, head, first, rows, seen, scale);
                        // The rows stay unnormalised until after the product, whose rows are shorter.
                        float factors[block];
                        for (std::int64_t r = 0; r < rows; ++r) {
                          float *row = scores + r * of.keys;
                          const std::int64_t n = of.end_of(first + r);
                          float sum = 0;
                          const float total = cpu::exp_row(row, n, sum);
                          *row_value(lse, batch, head, first + r) = total;
                          factors[r] = total == -std::numeric_limits<float>::infinity() ? 0.0f : 1.0f / sum;
                          for (std::int64_t j = n; j < seen; ++j)
                            row[j] = 0;
                        }
                        cpu::gemm(result, {scores, rows, seen, of.keys, 1},
                                  head_of(v, batch, head / of.group).part(0, 0, seen, v.sizes[3]), 1.0f, 0.0f);
                        for (std::int64_t r = 0; r < rows; ++r) {
                          float *row = result.data + r * result.row_stride;
                          cpu::with_stride(result.column_stride, [&](auto stride) {
                            WINDLASS_SIMD
                            for (std::int64_t e = 0; e < result.columns; ++e)
                              row[e * stride] *= factors[r];
                          });
                        }
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
        constexpr std::int64_t block = detail::attention_block;
        const std::int64_t blocks = (of.queries + block - 1) / block, kv_heads = k.sizes[1];
        // A task is a head of keys, whose gradients add up over its queries in a fixed order.
        detail::parallel(threads, of.batch * kv_heads, 1, [&](std::int64_t begin, std::int64_t end, std::int32_t part) {
          const std::int64_t area = std::min(block, of.queries) * of.keys;
          float *p = scratch + part * 2 * area, *dp = p + area;
          const bool is_packed = cpu::avx512::can_attend(of.queries, of.keys, q.sizes[3], v.sizes[3], true);
          for (std::int64_t item = begin; item < end; ++item) {
            const std::int64_t batch = item / kv_heads, kv = item % kv_heads;
            for (std::int64_t head = kv * of.group; is_packed && head < (kv + 1) * of.group; ++head) {
              cpu::avx512::attention_head all =
                  whole_head(out, lse, q, k, v, mask, scale, causal, batch, head, of.group);
              all.dout = head_of(dout, batch, head), all.dq = head_of(dq, batch, head);
              all.dk = head_of(dk, batch, kv), all.dv = head_of(dv, batch, kv);
              const bool is_first = head == kv * of.group;
              if (is_first)
                cpu::avx512::pack_attention(all, true);
              constexpr std::int64_t step = cpu::avx512::attention_rows;
              const std::int64_t last = (of.queries - 1) / step * step;
              // The last block first: it sees all keys, so that it can overwrite their gradients.
              for (std::int64_t first = last; first >= 0; first -= step)
                cpu::avx512::attention_grad_block(all, first, is_first && first == last, p);
            }
            if (is_packed)
              continue;
            const matrix keys = head_of(k, batch, kv), values = head_of(v, batch, kv);
            const matrix key_grad = head_of(dk, batch, kv), value_grad = head_of(dv, batch, kv);
            float beta = 0.0f;
            for (std::int64_t head = kv * of.group; head < (kv + 1) * of.group; ++head) {
              const matrix queries = head_of(q, batch, head), query_grad = head_of(dq, batch, head);
              const matrix result = head_of(out, batch, head), result_grad = head_of(dout, batch, head);
              // The last block first: it sees all keys, so that it can overwrite their gradients.
              for (std::int64_t b = blocks - 1; b >= 0; --b) {
                const std::int64_t first = b * block, rows = std::min(block, of.queries - first);
                const std::int64_t seen = of.end_of(first + rows - 1);
                block_scores(p, of, queries, keys, mask, batch, head, first, rows, seen, scale);
                const matrix dout_block = result_grad.part(first, 0, rows, result_grad.columns);
                cpu::gemm({dp, rows, seen, of.keys, 1}, dout_block,
                          values.part(0, 0, seen, values.columns).transposed(), 1.0f, 0.0f);
                for (std::int64_t r = 0; r < rows; ++r) {
                  const float *o = result.data + (first + r) * result.row_stride;
                  const float *d = result_grad.data + (first + r) * result_grad.row_stride;
                  float delta = 0;
                  for (std::int64_t e = 0; e < result.columns; ++e)
                    delta += o[e * result.column_stride] * d[e * result_grad.column_stride];
                  const float total = *row_value(lse, batch, head, first + r);
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
                const matrix weights = {p, rows, seen, of.keys, 1}, slopes = {dp, rows, seen, of.keys, 1};
                const float factor = static_cast<float>(scale);
                cpu::gemm(query_grad.part(first, 0, rows, queries.columns), slopes, keys.part(0, 0, seen, keys.columns),
                          factor, 0.0f);
                cpu::gemm(key_grad.part(0, 0, seen, keys.columns), slopes.transposed(),
                          queries.part(first, 0, rows, queries.columns), factor, beta);
                cpu::gemm(value_grad.part(0, 0, seen, values.columns), weights.transposed(), dout_block, 1.0f, beta);
                beta = 1.0f;
              }
            }
          }
        });
        return {};
      });
}

} // namespace windlass::rt
