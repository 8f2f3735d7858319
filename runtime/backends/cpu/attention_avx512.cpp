#include "attention_avx512.h"

#include "gemm_avx512.h"
#include "rows.h"
#include "tile_avx512.h"

#include "windlass/rt/detail/instructions.h"

#include <cmath>
#include <limits>

namespace windlass::rt::cpu::avx512 {

#if defined(__x86_64__)

// Scores stand transposed, [key][query]: a vector holds the same key for 16 queries, so that maxima and sums over keys
// need no shuffles, and scores are the packed left operand of the products that follow. Blocks of 32 queries leave
// little of the causal triangle's other half to be computed.

namespace {

constexpr float infinity = std::numeric_limits<float>::infinity();

std::int64_t panels_of(std::int64_t n, std::int64_t width) { return (n + width - 1) / width; }

/// Keys that query `t` sees: those before the result.
std::int64_t end_of(const attention_head &h, std::int64_t t) {
  return h.causal ? std::clamp<std::int64_t>(t + h.k.rows - h.q.rows + 1, 0, h.k.rows) : h.k.rows;
}

/// Where things lie in the thread's memory. "lanes" are packed as left operands or, of queries, as the right operand
/// whose columns they are; "columns" as the right operand whose rows they are.
struct layout {
  std::int64_t k_lanes = 0, v_columns, q_lanes, v_lanes, k_columns, dout_lanes, out_lanes, q_columns, dout_columns, end;
  layout(std::int64_t keys, std::int64_t width, std::int64_t value_width, bool gradient) {
    const std::int64_t key_panels = panels_of(keys, tile_rows) * lanes;
    const std::int64_t columns = panels_of(width, tile_columns) * tile_columns,
                       value_columns = panels_of(value_width, tile_columns) * tile_columns;
    v_columns = key_panels * width; // forward
    v_lanes = v_columns;            // gradient
    q_lanes = gradient ? v_lanes + key_panels * value_width : v_columns + value_columns * keys;
    k_columns = q_lanes + attention_rows * width;
    dout_lanes = k_columns + columns * keys;
    out_lanes = dout_lanes + attention_rows * value_width;
    q_columns = out_lanes + attention_rows * value_width;
    dout_columns = q_columns + columns * attention_rows;
    end = gradient ? dout_columns + value_columns * attention_rows : k_columns;
  }
  layout(const attention_head &h, bool gradient) : layout(h.k.rows, h.k.columns, h.v.columns, gradient) {}
};

/// The rows of `m` as lanes.
strip rows_of(const matrix &m) { return {m.data, m.rows, m.columns, m.row_stride, m.column_stride}; }
/// Its columns.
strip columns_of(const matrix &m) { return rows_of(m.transposed()); }

/// e^x as windlass::scalar::exp computes it, with the power of two in one instruction.
WINDLASS_AVX512 inline __m512 exp(__m512 x) {
  const __m512 c = _mm512_min_ps(_mm512_set1_ps(89.0f), _mm512_max_ps(_mm512_set1_ps(-104.0f), x)); // NaN stay
  const __m512 n = _mm512_roundscale_ps(_mm512_mul_ps(c, _mm512_set1_ps(1.44269504f)), 0);
  const __m512 r =
      _mm512_fmadd_ps(n, _mm512_set1_ps(2.12194440e-4f), _mm512_fnmadd_ps(n, _mm512_set1_ps(0.693359375f), c));
  __m512 p = _mm512_set1_ps(0.001381432225f);
  p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(0.008368851088f));
  p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(0.04166840105f));
  p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(0.1666651952f));
  p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(0.4999999337f));
  p = _mm512_add_ps(_mm512_fmadd_ps(_mm512_mul_ps(p, r), r, r), _mm512_set1_ps(1.0f));
  return _mm512_scalef_ps(p, n);
}

/// A block of queries and the keys that they see.
struct block {
  std::int64_t first, rows, seen, full; ///< all rows see the keys before `full`
  std::int64_t diagonal;                ///< row r sees key `diagonal` + r and those before
  block(const attention_head &h, std::int64_t from)
      : first(from), rows(std::min(attention_rows, h.q.rows - from)), seen(end_of(h, from + rows - 1)),
        full(std::min(seen, end_of(h, from))), diagonal(from + h.k.rows - h.q.rows) {}
  /// The lanes of vector `part` whose rows see key `key`.
  __mmask16 lanes_at(std::int64_t key, std::int64_t part) const {
    if (key < full)
      return 0xffff;
    return static_cast<__mmask16>(0xffffu << std::clamp<std::int64_t>(key - diagonal - part * lanes, 0, lanes));
  }
};

/// scores[key][row] = scale * k q^T + mask, -infinity where a row does not see a key.
WINDLASS_AVX512 void block_scores(float *scores, const attention_head &h, const block &at, const float *k_lanes,
                                  float *q_lanes) {
  const std::int64_t width = h.q.columns;
  pack(q_lanes, tile_columns, rows_of(h.q.part(at.first, 0, at.rows, width)));
  multiply_panels<1, lanes>({scores, at.seen, attention_rows, attention_rows, 1}, {k_lanes, tile_rows, lanes * width},
                            q_lanes, 0, width, {h.scale, 0.0f});
  constexpr std::int64_t step = 64;
  alignas(64) float added[step * attention_rows];
  for (std::int64_t key = 0; h.mask.data != nullptr && key < at.seen; key += step) {
    const std::int64_t n = std::min(step, at.seen - key);
    pack(added, attention_rows, rows_of(h.mask.part(at.first, key, at.rows, n)));
    for (std::int64_t i = 0; i < n * attention_rows; i += lanes) {
      float *const to = scores + key * attention_rows + i;
      _mm512_storeu_ps(to, _mm512_add_ps(_mm512_loadu_ps(to), _mm512_load_ps(added + i)));
    }
  }
  for (std::int64_t key = at.full; key < at.seen; ++key)
    for (std::int64_t part = 0; part < 2; ++part) {
      float *const to = scores + key * attention_rows + part * lanes;
      _mm512_storeu_ps(to, _mm512_mask_loadu_ps(_mm512_set1_ps(-infinity), at.lanes_at(key, part), to));
    }
}

} // namespace

bool can_attend(std::int64_t queries, std::int64_t keys, std::int64_t width, std::int64_t value_width, bool gradient) {
  // Sizes are bounded before they are multiplied.
  constexpr std::int64_t most = thread_bytes / 4;
  return detail::uses_avx512() && queries >= attention_rows && keys > 0 && keys <= most && width > 0 && width <= most &&
         value_width > 0 && value_width <= most && layout(keys, width, value_width, gradient).end <= most &&
         prepare_thread();
}

WINDLASS_AVX512 void pack_attention(const attention_head &h, bool gradient) {
  float *const memory = thread_memory();
  const layout lies(h, gradient);
  pack(memory + lies.k_lanes, tile_rows, rows_of(h.k));
  if (!gradient)
    return pack(memory + lies.v_columns, tile_columns, columns_of(h.v));
  pack(memory + lies.v_lanes, tile_rows, rows_of(h.v));
  pack(memory + lies.k_columns, tile_columns, columns_of(h.k));
}

// Eleven rows in a tile: 32 are two tiles of eleven and one of ten.
constexpr std::int64_t query_tile = 11;

WINDLASS_AVX512 void attention_block(const attention_head &h, std::int64_t first, float *scores) {
  const block at(h, first);
  const layout lies(h, false);
  float *const memory = thread_memory();
  block_scores(scores, h, at, memory + lies.k_lanes, memory + lies.q_lanes);
  __m512 most[2][2], sums[2] = {_mm512_setzero_ps(), _mm512_setzero_ps()};
  for (int turn = 0; turn < 2; ++turn)
    for (int part = 0; part < 2; ++part)
      most[turn][part] = _mm512_set1_ps(-infinity);
  // A NaN is passed over here and found by the sums.
  std::int64_t key = 0;
  for (; key + 2 <= at.seen; key += 2)
    for (int turn = 0; turn < 2; ++turn)
      for (int part = 0; part < 2; ++part)
        most[turn][part] =
            _mm512_max_ps(_mm512_loadu_ps(scores + (key + turn) * attention_rows + part * lanes), most[turn][part]);
  for (; key < at.seen; ++key)
    for (int part = 0; part < 2; ++part)
      most[0][part] = _mm512_max_ps(_mm512_loadu_ps(scores + key * attention_rows + part * lanes), most[0][part]);
  // With an infinity as the maximum the difference below would be NaN where the limit is that infinity.
  __m512 base[2];
  for (int part = 0; part < 2; ++part) {
    base[part] = _mm512_max_ps(most[0][part], most[1][part]);
    const __mmask16 finite = _mm512_cmp_ps_mask(_mm512_abs_ps(base[part]), _mm512_set1_ps(infinity), _CMP_LT_OQ);
    base[part] = _mm512_maskz_mov_ps(finite, base[part]);
  }
  for (key = 0; key < at.seen; ++key)
    for (int part = 0; part < 2; ++part) {
      float *const to = scores + key * attention_rows + part * lanes;
      const __m512 e = exp(_mm512_sub_ps(_mm512_loadu_ps(to), base[part]));
      _mm512_storeu_ps(to, e);
      sums[part] = _mm512_add_ps(sums[part], e);
    }
  alignas(64) float bases[attention_rows], totals[attention_rows];
  for (int part = 0; part < 2; ++part) {
    _mm512_store_ps(bases + part * lanes, base[part]);
    _mm512_store_ps(totals + part * lanes, sums[part]);
  }
  const matrix result = h.out.part(first, 0, at.rows, h.v.columns);
  multiply_panels<1, attention_rows>(result, {scores, query_tile, query_tile}, memory + lies.v_columns,
                                     tile_columns * h.k.rows, at.seen, {1.0f, 0.0f});
  // The rows stay unnormalised until after the product: they are shorter.
  for (std::int64_t r = 0; r < at.rows; ++r) {
    const float total = bases[r] + std::log(totals[r]);
    h.lse[(first + r) * h.lse_stride] = total;
    const float factor = total == -infinity ? 0.0f : 1.0f / totals[r];
    float *row = result.data + r * result.row_stride;
    with_stride(result.column_stride, [&](auto stride) {
      WINDLASS_SIMD
      for (std::int64_t e = 0; e < result.columns; ++e)
        row[e * stride] *= factor;
    });
  }
}

WINDLASS_AVX512 void attention_grad_block(const attention_head &h, std::int64_t first, bool overwrites, float *scores) {
  const block at(h, first);
  const layout lies(h, true);
  const std::int64_t width = h.q.columns, value_width = h.v.columns, keys = h.k.rows;
  float *const memory = thread_memory(), *const slopes = scores + attention_rows * keys;
  block_scores(scores, h, at, memory + lies.k_lanes, memory + lies.q_lanes);
  const matrix dout = h.dout.part(first, 0, at.rows, value_width);
  float *const dout_lanes = memory + lies.dout_lanes, *const out_lanes = memory + lies.out_lanes;
  pack(dout_lanes, tile_columns, rows_of(dout));
  pack(out_lanes, tile_columns, rows_of(h.out.part(first, 0, at.rows, value_width)));
  multiply_panels<1, lanes>({slopes, at.seen, attention_rows, attention_rows, 1},
                            {memory + lies.v_lanes, tile_rows, lanes * value_width}, dout_lanes, 0, value_width,
                            {1.0f, 0.0f});
  alignas(64) float totals[attention_rows];
  for (std::int64_t r = 0; r < attention_rows; ++r)
    totals[r] = r < at.rows ? h.lse[(first + r) * h.lse_stride] : -infinity;
  for (int part = 0; part < 2; ++part) {
    const __m512 total = _mm512_load_ps(totals + part * lanes);
    const __mmask16 sees = _mm512_cmp_ps_mask(total, _mm512_set1_ps(-infinity), _CMP_NEQ_UQ);
    __m512 delta = _mm512_setzero_ps();
    for (std::int64_t e = 0; e < value_width; ++e)
      delta = _mm512_fmadd_ps(_mm512_load_ps(dout_lanes + e * attention_rows + part * lanes),
                              _mm512_load_ps(out_lanes + e * attention_rows + part * lanes), delta);
    for (std::int64_t key = 0; key < at.seen; ++key) {
      float *const p = scores + key * attention_rows + part * lanes, *const d = slopes + (p - scores);
      const __mmask16 there = sees & at.lanes_at(key, part);
      const __m512 weight = _mm512_maskz_mov_ps(there, exp(_mm512_sub_ps(_mm512_loadu_ps(p), total)));
      _mm512_storeu_ps(p, weight);
      _mm512_storeu_ps(d, _mm512_maskz_mul_ps(there, weight, _mm512_sub_ps(_mm512_loadu_ps(d), delta)));
    }
  }
  const matrix queries = h.q.part(first, 0, at.rows, width);
  multiply_panels<1, attention_rows>(h.dq.part(first, 0, at.rows, width), {slopes, query_tile, query_tile},
                                     memory + lies.k_columns, tile_columns * keys, at.seen, {h.scale, 0.0f});
  const float beta = overwrites ? 0.0f : 1.0f;
  pack(memory + lies.q_columns, tile_columns, columns_of(queries));
  multiply_panels<attention_rows, 1>(h.dk.part(0, 0, at.seen, width), {slopes, tile_rows, tile_rows * attention_rows},
                                     memory + lies.q_columns, tile_columns * at.rows, at.rows, {h.scale, beta});
  pack(memory + lies.dout_columns, tile_columns, columns_of(dout));
  multiply_panels<attention_rows, 1>(h.dv.part(0, 0, at.seen, value_width),
                                     {scores, tile_rows, tile_rows * attention_rows}, memory + lies.dout_columns,
                                     tile_columns * at.rows, at.rows, {1.0f, beta});
}

#else

bool can_attend(std::int64_t, std::int64_t, std::int64_t, std::int64_t, bool) { return false; }

// Never called where can_attend is false.
void pack_attention(const attention_head &, bool) {}
void attention_block(const attention_head &, std::int64_t, float *) {}
void attention_grad_block(const attention_head &, std::int64_t, bool, float *) {}

#endif

} // namespace windlass::rt::cpu::avx512
