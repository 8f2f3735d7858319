// How an attention is described to a device's library, and which of a program's attentions libraries compute.
#ifndef WINDLASS_RT_ATTENTION_SHAPE_H
#define WINDLASS_RT_ATTENTION_SHAPE_H

#include "windlass/rt/span.h"
#include "windlass/rt/view.h"

#include <array>
#include <cstdint>
#include <string>

namespace windlass::rt {

/// An attention without a mask other than the causal one, or its gradient. Operands have dims [batch, heads, rows,
/// columns], and the columns of a row are contiguous; the logarithms of the sums are dense f32.
struct attention_shape {
  enum operand { q, k, v, out, dout, dq, dk, dv, operands };
  element_type type; ///< the type of all operands
  bool is_gradient;  ///< only a gradient has the operands from dout on
  bool is_causal;
  double scale;
  std::int64_t batch, heads, kv_heads, queries, keys, depth, value_depth;
  std::int64_t strides[operands][3]; ///< of all dims but the last, in elements; 0 for an absent operand
};
bool operator==(const attention_shape &a, const attention_shape &b);
/// Returns the sizes [batch, heads, rows, columns] of `operand`.
std::array<std::int64_t, 4> sizes_of(const attention_shape &shape, int operand);
/// Returns a name for people to read.
std::string name_of(const attention_shape &shape);

/// The operands of `attention`, or with the last four those of `attention_grad`; an absent one has rank 0.
struct attention_views {
  view q, k, v, mask, out, lse, dout, dq, dk, dv;
};
/// Fills `out` and returns true for an attention that libraries take: of 16 bits, without a mask, with a key for every
/// query, and with all rows at multiples of 16 bytes. Reads types, sizes and strides only.
bool describe_attention(const attention_views &views, double scale, bool is_causal, attention_shape &out);

/// Returns the most bytes of workspace that cuDNN's deterministic graphs need. A gradient needs
/// - the larger of two matrices: 16 bits for each pair of a query and a key, in whole tiles, or the gradients of the
///   queries in f32;
/// - a sum in f32 for each query;
/// - where several heads share keys and values, the gradients of the keys and values in f32, for each head.
/// Source: scaled_dot_product_flash_attention.h of cuDNN's frontend 1.32.
std::int64_t library_workspace_bytes(const attention_shape &shape);

/// An attention that the device's library computes.
struct attention_choice {
  attention_shape shape;
  std::int64_t workspace_bytes; ///< bytes planned for the library, a part of the program's scratch
};

} // namespace windlass::rt

#endif
