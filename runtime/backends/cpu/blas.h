// Single-threaded GEMM of OpenBLAS; kernels divide work among threads themselves.
#ifndef WINDLASS_BACKENDS_CPU_BLAS_H
#define WINDLASS_BACKENDS_CPU_BLAS_H

#include "windlass/rt/status.h"

#include <cstdint>
#include <string>

namespace windlass::rt::cpu {

/// A matrix of f32 with any strides, counted in elements.
struct matrix {
  float *data;
  std::int64_t rows, columns, row_stride, column_stride;

  matrix transposed() const { return {data, columns, rows, column_stride, row_stride}; }
  matrix part(std::int64_t row, std::int64_t column, std::int64_t height, std::int64_t width) const {
    return {data + row * row_stride + column * column_stride, height, width, row_stride, column_stride};
  }
};

/// Loads the library at the first call. bad_input, naming the package, when there is none.
status load_blas();
/// Name of the kernels that the library chose, for reports.
std::string blas_core_name();

/// Whether BLAS takes the matrix as it is: one unit stride, the other large enough not to overlap.
bool is_blas_matrix(const matrix &m);

/// c = alpha * a b + beta * c on the calling thread. Any strides; matrices that BLAS cannot take are multiplied by
/// plain loops. load_blas must have succeeded.
void gemm(const matrix &c, const matrix &a, const matrix &b, float alpha, float beta);

} // namespace windlass::rt::cpu

#endif
