// Single-threaded product of matrices; kernels divide work among threads themselves.
#ifndef WINDLASS_BACKENDS_CPU_GEMM_H
#define WINDLASS_BACKENDS_CPU_GEMM_H

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

/// Chooses the kernels for this processor at the first call: our own where it has AVX-512, OpenBLAS elsewhere.
/// bad_input, naming the package, when OpenBLAS is needed and not installed.
status prepare_gemm();
/// Allocates what the calling thread keeps for its products, once for its life; false when there is no memory for it.
bool prepare_gemm_thread();
/// c = alpha * a b + beta * c on the calling thread, any strides. With beta 0 c is not read. prepare_gemm must have
/// succeeded; a thread that is not prepared prepares itself.
void gemm(const matrix &c, const matrix &a, const matrix &b, float alpha, float beta);
/// Computes the same by plain loops, which need no memory and take any strides.
void gemm_loops(const matrix &c, const matrix &a, const matrix &b, float alpha, float beta);

} // namespace windlass::rt::cpu

#endif
