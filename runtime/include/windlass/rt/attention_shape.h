// Attentions as a device's library has to know them to compute them, and which of a program's it does.
#ifndef WINDLASS_RT_ATTENTION_SHAPE_H
#define WINDLASS_RT_ATTENTION_SHAPE_H

#include "windlass/rt/span.h"
#include "windlass/rt/view.h"

#include <array>
#include <cstdint>
#include <string>

namespace windlass::rt {

/// An attention without a mask but the causal one, or its gradient. Operands lie [batch, heads, rows, columns], and the
/// columns of a row are next to each other; the logarithms of the sums are dense and f32.
struct attention_shape {
  enum operand { q, k, v, out, dout, dq, dk, dv, operands };
  element_type type; ///< of all operands
  bool is_gradient;  ///< which alone has the operands from dout on
  bool is_causal;
  double scale;
  std::int64_t batch, heads, kv_heads, queries, keys, depth, value_depth;
  std::int64_t strides[operands][3]; ///< of the dims before the last, in elements; 0 for what is not there
};
bool operator==(const attention_shape &a, const attention_shape &b);
/// [batch, heads, rows, columns] of an operand.
std::array<std::int64_t, 4> sizes_of(const attention_shape &shape, int operand);
/// For people.
std::string name_of(const attention_shape &shape);

/// The operands of `attention`, and with the last four of `attention_grad`; what is not there has rank 0.
struct attention_views {
  view q, k, v, mask, out, lse, dout, dq, dk, dv;
};
/// Whether it is one that libraries take: of 16 bits, without a mask, with a key for every query, and with all rows at
/// multiples of 16 bytes. Reads types, sizes and strides only.
bool describe_attention(const attention_views &views, double scale, bool is_causal, attention_shape &out);

/// An attention that the device's library computed faster than the own kernels.
struct attention_choice {
  attention_shape shape;
  std::int64_t workspace_bytes; ///< that it needed, and that are part of the program's scratch
};
/// What a profile has found to be faster so; it holds for that device with that library.
struct attention_choices {
  const char *device, *library; ///< null where there are none
  span<attention_choice> choices;
};

} // namespace windlass::rt

#endif
