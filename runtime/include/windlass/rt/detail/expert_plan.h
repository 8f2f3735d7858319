// Sizes of a layer of experts, and how its kernels use the scratch.
#ifndef WINDLASS_RT_DETAIL_EXPERT_PLAN_H
#define WINDLASS_RT_DETAIL_EXPERT_PLAN_H

#include "windlass/rt/kernels.h"
#include "windlass/rt/scalar.h"

#include "windlass/rt/detail/table_rows.h"

#include <algorithm>
#include <type_traits>

namespace windlass::rt::detail {

/// The most rows, which are choices of tokens, whose hidden values a thread has in the scratch.
constexpr std::int64_t expert_rows = 256;

/// A layer of experts, of which `stored` are in the matrices. Choices are numbered token by token; rows are those whose
/// experts are here, in the order of experts and then of tokens. The first `gate` hidden values come from the
/// gate's own matrix; 0 where it has none. In a gated layer the activated values come first, then as many that multiply
/// them.
struct expert_plan {
  std::int64_t tokens, in, chosen, stored, experts, hidden, width, out, gate;
  expert_layer of;

  WINDLASS_FN bool is_gated() const { return hidden != width; }

  WINDLASS_FN std::int64_t choices() const { return tokens * chosen; }
  /// The rows that `threads` threads take at once.
  std::int64_t block(std::int32_t threads) const { return std::min(choices(), expert_rows * threads); }
  /// What a row needs in f32: its input, hidden values, activated ones and result, or for the gradient its input, the
  /// result's gradient, hidden values, and two times activated ones.
  std::int64_t forward_floats() const { return in + hidden + width + out; }
  std::int64_t gradient_floats() const { return in + out + hidden + 2 * width; }

  // The scratch begins with lists of i32: which choice each row is, which row each choice is (-1: of an expert that is
  // elsewhere), and where each expert's rows begin, with their number at the end. Rows of f32 follow.
  std::int64_t list_bytes() const { return (2 * choices() + stored + 1 + 15) / 16 * 16 * 4; }
  /// The bytes for each thread.
  std::int64_t scratch_bytes(std::int64_t row_floats) const { return list_bytes() + block(1) * row_floats * 4; }
  WINDLASS_FN std::int64_t places_at() const { return choices(); }
  WINDLASS_FN std::int64_t starts_at() const { return 2 * choices(); }

  /// The FLOPs of `ups` products by the first matrix and `downs` by the second, where all experts are chosen equally
  /// often.
  std::int64_t flops(std::int64_t ups, std::int64_t downs) const {
    return 2 * (choices() * stored / experts) * (ups * hidden * in + downs * width * out);
  }
};

/// Describes the layer; false where views do not fit together.
inline bool plan_experts(const view &x, const view &choices, const view &up, const view &down, const view &gate,
                         const view &first, const expert_layer &of, expert_plan &plan) {
  if (x.rank != 2 || choices.rank != 2 || up.rank != 3 || down.rank != 3 || !fits_parts(up, first, of.all_rows))
    return false;
  const int output = of.inputs_first ? 2 : 1, input = of.inputs_first ? 1 : 2;
  // The compiler describes layers by views without data.
  const bool has_gate = gate.rank > 0;
  const std::int64_t gate_size = has_gate ? up.sizes[output] : 0;
  plan = {x.sizes[0],
          x.sizes[1],
          choices.sizes[1],
          up.sizes[0],
          of.all_rows > 0 ? of.all_rows : up.sizes[0],
          up.sizes[output] + gate_size,
          down.sizes[input],
          down.sizes[output],
          gate_size,
          of};
  constexpr std::int64_t most = 0x7fffffff;
  const bool fits_gate = !has_gate || (!of.gated && gate.rank == 3 && gate.type == up.type &&
                                       std::equal(gate.sizes, gate.sizes + 3, up.sizes));
  return fits_gate && choices.sizes[0] == plan.tokens && up.sizes[input] == plan.in && down.sizes[0] == plan.stored &&
         plan.hidden == plan.width * (of.gated || has_gate ? 2 : 1) && plan.choices() <= most / 4 &&
         plan.stored <= most / 4;
}

/// The distances of experts, outputs and inputs in a matrix of a layer, in elements.
struct expert_strides {
  std::int64_t expert, output, input;
};
inline expert_strides strides_of(const view &matrices, const expert_layer &of) {
  return {matrices.strides[0], matrices.strides[of.inputs_first ? 2 : 1], matrices.strides[of.inputs_first ? 1 : 2]};
}

/// Returns whether a view is [rows, columns] of that type.
inline bool is_plane(const view &v, std::int64_t rows, std::int64_t columns, element_type type) {
  return v.rank == 2 && v.sizes[0] == rows && v.sizes[1] == columns && v.type == type;
}

// Scalar functions of an activation.

template <expert_activation A, class T> WINDLASS_FN T activate(T x) {
  if constexpr (A == expert_activation::relu)
    return windlass::scalar::relu(x);
  else if constexpr (A == expert_activation::gelu_erf)
    return windlass::scalar::gelu_erf(x);
  else if constexpr (A == expert_activation::gelu_tanh)
    return windlass::scalar::gelu_tanh(x);
  else
    return windlass::scalar::silu(x);
}

template <expert_activation A, class T> WINDLASS_FN T activate_grad(T x, T dy) {
  if constexpr (A == expert_activation::relu)
    return windlass::scalar::relu_grad(x, dy);
  else if constexpr (A == expert_activation::gelu_erf)
    return windlass::scalar::gelu_erf_grad(x, dy);
  else if constexpr (A == expert_activation::gelu_tanh)
    return windlass::scalar::gelu_tanh_grad(x, dy);
  else
    return windlass::scalar::silu_grad(x, dy);
}

template <expert_activation A> using activation_constant = std::integral_constant<expert_activation, A>;

/// Calls f with the activation as a constant, so that loops over it have no branch.
template <class F> auto with_activation(expert_activation activation, F f) {
  switch (activation) {
  case expert_activation::relu:
    return f(activation_constant<expert_activation::relu>());
  case expert_activation::gelu_erf:
    return f(activation_constant<expert_activation::gelu_erf>());
  case expert_activation::gelu_tanh:
    return f(activation_constant<expert_activation::gelu_tanh>());
  case expert_activation::silu:
    break;
  }
  return f(activation_constant<expert_activation::silu>());
}

} // namespace windlass::rt::detail

#endif
