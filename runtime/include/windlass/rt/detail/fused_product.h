// Products together with what a device's library may compute in the same pass.
#ifndef WINDLASS_RT_DETAIL_FUSED_PRODUCT_H
#define WINDLASS_RT_DETAIL_FUSED_PRODUCT_H

#include "windlass/rt/view.h"

namespace windlass::rt::detail {

/// The operands of `matmul_bias`, `matmul_bias_gelu`, `matmul_gelu_grad` or `matmul_bias_grad`; kernels.h says what
/// they mean.
struct fused_product {
  enum kind { bias, bias_gelu, gelu_grad, bias_grad };
  kind what;
  view out, a, b;
  view vector; ///< the bias, of the result's sizes, or its gradient; absent for `gelu_grad`
  view input;  ///< the input of GELU: written, or absent, for `bias_gelu`; read for `gelu_grad`
  std::int32_t contract_rank;
  bool sums_b = false; ///< the bias gradient sums b, not a
  bool accumulate = false;
  view added = {}; ///< added to the sum with the bias; may be absent
};
/// Returns the name for tables of time.
constexpr const char *name_of(fused_product::kind kind) {
  return kind == fused_product::bias        ? "matmul_bias"
         : kind == fused_product::bias_gelu ? "matmul_bias_gelu"
         : kind == fused_product::gelu_grad ? "matmul_gelu_grad"
                                            : "matmul_bias_grad";
}

} // namespace windlass::rt::detail

#endif
