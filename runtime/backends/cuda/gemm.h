// Products of matrices by the device's library.
#ifndef WINDLASS_BACKENDS_CUDA_GEMM_H
#define WINDLASS_BACKENDS_CUDA_GEMM_H

#include "windlass/rt/status.h"
#include "windlass/rt/stream.h"
#include "windlass/rt/view.h"

#include <memory>

namespace windlass::rt::cuda {

/// c[i] = a[i] b[i] + beta c[i] for `batch` products of [m, k] and [k, n]. Strides count elements; in each matrix one
/// of the two is 1 (or its dimension is 1), and the other at least the size of the first's dimension.
struct gemm_call {
  struct matrix {
    std::byte *data;
    element_type type; ///< of a and b the same
    std::int64_t row_stride, column_stride, batch_stride;
  };
  matrix a, b, c;
  std::int64_t m, n, k, batch = 1;
  float beta = 0;
  bool rounds_to_tf32 = false; ///< operands of f32, whose products then run on tensor cores
};

/// The call as libraries with columns in a row want it: d = op(x) op(y), all with a leading dimension.
struct column_gemm {
  struct matrix {
    std::byte *data;
    element_type type;
    bool is_transposed;
    std::int64_t rows, columns, leading, batch_stride; ///< as stored, before it is transposed
  };
  matrix x, y, d;
  std::int64_t m, n, k, batch;
  float beta;
  bool rounds_to_tf32;
};
column_gemm as_columns(const gemm_call &call);

/// A library's handle and what it has learnt about shapes. Used by one thread.
class gemm_library {
public:
  virtual ~gemm_library() = default;
  virtual status run(stream &s, const column_gemm &call, std::byte *workspace, std::int64_t workspace_bytes) = 0;
};
std::unique_ptr<gemm_library> make_gemm_library();

} // namespace windlass::rt::cuda

#endif
