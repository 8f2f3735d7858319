// Products and what follows them, as two kernels unless a device's library was measured to take less time for both.
#include "windlass/rt/kernels.h"
#include "windlass/rt/map.h"

#include "windlass/rt/detail/backend.h"
#include "windlass/rt/detail/fused_product.h"

namespace windlass::rt {

namespace {

using detail::fused_product;

// The roundings are those of the fused functions that programs emit for the same: the sum itself is not rounded before
// GELU.
template <class T> struct add_bias {
  static constexpr const char *name = "add";
  using outputs = type_list<T>;
  using inputs = type_list<T, T>;
  WINDLASS_FN static void apply(T &sum, T x, T bias) {
    sum = T(scalar::add(static_cast<float>(x), static_cast<float>(bias)));
  }
};
template <class T> struct add_bias_and_more {
  static constexpr const char *name = "add, add";
  using outputs = type_list<T>;
  using inputs = type_list<T, T, T>;
  WINDLASS_FN static void apply(T &sum, T x, T bias, T added) {
    const float both = scalar::add(static_cast<float>(x), static_cast<float>(bias));
    sum = T(scalar::add(both, static_cast<float>(added)));
  }
};
template <class T> struct add_bias_gelu {
  static constexpr const char *name = "add, gelu_tanh";
  using outputs = type_list<T>;
  using inputs = type_list<T, T>;
  WINDLASS_FN static void apply(T &out, T x, T bias) {
    out = T(scalar::gelu_tanh(scalar::add(static_cast<float>(x), static_cast<float>(bias))));
  }
};
template <class T> struct add_bias_gelu_input {
  static constexpr const char *name = "add, gelu_tanh";
  using outputs = type_list<T, T>;
  using inputs = type_list<T, T>;
  WINDLASS_FN static void apply(T &sum, T &out, T x, T bias) {
    const float both = scalar::add(static_cast<float>(x), static_cast<float>(bias));
    sum = T(both);
    out = T(scalar::gelu_tanh(both));
  }
};

template <class T> struct gelu_grad {
  static constexpr const char *name = "gelu_tanh_grad";
  using outputs = type_list<T>;
  using inputs = type_list<T, T>;
  WINDLASS_FN static void apply(T &dx, T x, T dy) {
    dx = T(scalar::gelu_tanh_grad(static_cast<float>(x), static_cast<float>(dy)));
  }
};

/// Does what follows the product, which is already in the input of GELU, if that is kept, else in the result.
template <class T> status finish_product(stream &s, const fused_product &of) {
  if (of.what == fused_product::gelu_grad)
    return map(s, gelu_grad<T>{}, {of.out}, {of.input, of.out});
  if (!of.added.is_absent())
    return map(s, add_bias_and_more<T>{}, {of.out}, {of.out, of.vector, of.added});
  if (of.what == fused_product::bias)
    return map(s, add_bias<T>{}, {of.out}, {of.out, of.vector});
  if (of.input.is_absent())
    return map(s, add_bias_gelu<T>{}, {of.out}, {of.out, of.vector});
  return map(s, add_bias_gelu_input<T>{}, {of.input, of.out}, {of.input, of.vector});
}

status multiply_and_finish(stream &s, const fused_product &of) {
  const bool keeps_input = of.what == fused_product::bias_gelu && !of.input.is_absent();
  const view &product = keeps_input ? of.input : of.out;
  WINDLASS_TRY(matmul(s, product, of.a, of.b, 0, of.contract_rank, false));
  switch (of.out.type) {
  case element_type::bf16:
    return finish_product<detail::bf16>(s, of);
  case element_type::f16:
    return finish_product<detail::f16>(s, of);
  default:
    return finish_product<float>(s, of);
  }
}

/// Returns the operand with the contracted dims last, as `reduce` wants it.
view contracted_last(const fused_product &of) {
  if (!of.sums_b)
    return of.a;
  view turned = of.b;
  const std::int32_t columns = of.b.rank - of.contract_rank;
  for (std::int32_t d = 0; d < of.b.rank; ++d) {
    const std::int32_t from = d < columns ? of.contract_rank + d : d - columns;
    turned.sizes[d] = of.b.sizes[from];
    turned.strides[d] = of.b.strides[from];
  }
  return turned;
}

status multiply_and_sum(stream &s, const fused_product &of) {
  WINDLASS_TRY(reduce(s, of.vector, contracted_last(of), of.contract_rank, reduction::sum, of.accumulate));
  return matmul(s, of.out, of.a, of.b, 0, of.contract_rank, of.accumulate);
}

status run(stream &s, const fused_product &of) {
  const auto apart = [&s, &of]() -> status {
    return of.what == fused_product::bias_grad ? multiply_and_sum(s, of) : multiply_and_finish(s, of);
  };
  if constexpr (detail::backend_has_device)
    return detail::run_fused(s, of, apart);
  else
    return apart();
}

} // namespace

status matmul_bias(stream &s, const view &out, const view &a, const view &b, const view &bias, const view &added,
                   std::int32_t contract_rank) {
  return run(s, {fused_product::bias, out, a, b, bias, {}, contract_rank, false, false, added});
}

status matmul_bias_gelu(stream &s, const view &out, const view &input, const view &a, const view &b, const view &bias,
                        std::int32_t contract_rank) {
  return run(s, {fused_product::bias_gelu, out, a, b, bias, input, contract_rank});
}

status matmul_gelu_grad(stream &s, const view &dx, const view &a, const view &b, const view &x,
                        std::int32_t contract_rank) {
  return run(s, {fused_product::gelu_grad, dx, a, b, {}, x, contract_rank});
}

status matmul_bias_grad(stream &s, const view &out, const view &dbias, const view &a, const view &b,
                        std::int32_t contract_rank, bool sums_b, bool accumulate) {
  return run(s, {fused_product::bias_grad, out, a, b, dbias, {}, contract_rank, sums_b, accumulate});
}

} // namespace windlass::rt
