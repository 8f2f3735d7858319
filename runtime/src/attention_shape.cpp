// The description of attentions for libraries. The compiler evaluates this too, for views without data.
#include "windlass/rt/attention_shape.h"

#include <algorithm>
#include <cstring>
#include <tuple>

namespace windlass::rt {

namespace {

constexpr std::int64_t row_bytes = 16; // that libraries load at once

auto numbers_of(const attention_shape &s) {
  return std::tie(s.type, s.is_gradient, s.is_causal, s.scale, s.batch, s.heads, s.kv_heads, s.queries, s.keys, s.depth,
                  s.value_depth);
}

} // namespace

bool operator==(const attention_shape &a, const attention_shape &b) {
  return numbers_of(a) == numbers_of(b) && std::memcmp(a.strides, b.strides, sizeof a.strides) == 0;
}

std::array<std::int64_t, 4> sizes_of(const attention_shape &of, int operand) {
  const bool is_key = operand == attention_shape::k || operand == attention_shape::dk;
  const bool is_value = operand == attention_shape::v || operand == attention_shape::dv;
  const bool is_query = operand == attention_shape::q || operand == attention_shape::dq;
  return {of.batch, is_key || is_value ? of.kv_heads : of.heads, is_key || is_value ? of.keys : of.queries,
          is_key || is_query ? of.depth : of.value_depth};
}

std::string name_of(const attention_shape &of) {
  std::string name = of.type == element_type::bf16 ? "bf16" : "f16";
  name += of.is_gradient ? " gradient " : " ";
  for (const std::int64_t size : {of.batch, of.heads, of.queries})
    name += std::to_string(size) + 'x';
  name += std::to_string(of.depth);
  if (of.keys != of.queries || of.kv_heads != of.heads || of.value_depth != of.depth)
    name += " on " + std::to_string(of.kv_heads) + 'x' + std::to_string(of.keys) + 'x' + std::to_string(of.value_depth);
  return name + (of.is_causal ? " causal" : "");
}

std::int64_t library_workspace_bytes(const attention_shape &of) {
  // What its kernels want besides what its frontend counts: nothing for the shapes that were seen.
  constexpr std::int64_t kernels_bytes = std::int64_t(1) << 20;
  if (!of.is_gradient)
    return kernels_bytes;
  const auto whole_tiles = [](std::int64_t n, std::int64_t tile) { return (n + tile - 1) / tile * tile; };
  const std::int64_t heads = of.batch * of.heads;
  const std::int64_t pairs = heads * whole_tiles(of.queries, 64) * whole_tiles(of.keys, 128) * 2;
  const std::int64_t query_sums = heads * of.queries * of.depth * 4;
  const std::int64_t key_sums = of.heads == of.kv_heads ? 0 : heads * of.keys * (of.depth + of.value_depth) * 4;
  return kernels_bytes + std::max(pairs, query_sums) + key_sums + heads * of.queries * 4;
}

bool describe_attention(const attention_views &views, double scale, bool is_causal, attention_shape &out) {
  const view &q = views.q, &k = views.k, &v = views.v;
  if (q.rank != 4 || k.rank != 4 || v.rank != 4 || views.mask.rank != 0 || !views.lse.is_contiguous() ||
      views.lse.type != element_type::f32 || (q.type != element_type::bf16 && q.type != element_type::f16))
    return false;
  const std::int64_t step = row_bytes / size_of(q.type);
  out = {};
  out.type = q.type;
  out.is_gradient = views.dout.rank != 0;
  out.is_causal = is_causal;
  out.scale = scale;
  out.batch = q.sizes[0];
  out.heads = q.sizes[1];
  out.kv_heads = k.sizes[1];
  out.queries = q.sizes[2];
  out.keys = k.sizes[2];
  out.depth = q.sizes[3];
  out.value_depth = v.sizes[3];
  if (out.batch < 1 || out.kv_heads < 1 || out.heads % out.kv_heads != 0 || out.queries < 1 || out.keys < 1 ||
      out.depth < 1 || out.value_depth < 1 || out.depth % step != 0 || out.value_depth % step != 0 ||
      (is_causal && out.queries > out.keys)) // a query that sees no key
    return false;
  const view *const all[] = {&q, &k, &v, &views.out, &views.dout, &views.dq, &views.dk, &views.dv};
  for (int i = 0; i < (out.is_gradient ? attention_shape::operands : attention_shape::dout); ++i) {
    const std::array<std::int64_t, 4> sizes = sizes_of(out, i);
    if (all[i]->rank != 4 || !std::equal(sizes.begin(), sizes.end(), all[i]->sizes) || all[i]->type != q.type ||
        all[i]->strides[3] != 1)
      return false;
    for (int d = 0; d < 3; ++d) {
      if (all[i]->strides[d] < 1 || all[i]->strides[d] % step != 0)
        return false;
      out.strides[i][d] = all[i]->strides[d];
    }
  }
  return true;
}

} // namespace windlass::rt
