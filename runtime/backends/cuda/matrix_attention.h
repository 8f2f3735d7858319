// Attention on tensor cores.
#ifndef WINDLASS_BACKENDS_CUDA_MATRIX_ATTENTION_H
#define WINDLASS_BACKENDS_CUDA_MATRIX_ATTENTION_H

#include "attention_parts.h"

#include <initializer_list>

namespace windlass::rt::cuda {

/// Whether these kernels compute attentions of such queries, keys, values, results and gradients: of one type of 16
/// bits, with heads of up to 128 columns, on a device that has the units.
bool takes_matrix_units(std::initializer_list<view> operands);
status attention_by_matrices(stream &s, const view &out, const view &lse, const view &q, const view &k, const view &v,
                             const view &mask, const attention_sizes &of);
status attention_grad_by_matrices(stream &s, const view &dq, const view &dk, const view &dv, const view &dout,
                                  const view &q, const view &k, const view &v, const view &mask, const view &out,
                                  const view &lse, const attention_sizes &of);

/// lse [batch, heads, queries] as heads of one column.
heads rows_of(const view &lse);

} // namespace windlass::rt::cuda

#endif
