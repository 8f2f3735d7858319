// GEMM of the OpenBLAS that is installed, opened when it is first needed.
#ifndef WINDLASS_BACKENDS_CPU_OPENBLAS_H
#define WINDLASS_BACKENDS_CPU_OPENBLAS_H

#include "gemm.h"

namespace windlass::rt::cpu::openblas {

/// Loads the library at the first call. bad_input, naming the package, when there is none.
status load();
/// The library's file and the kernels that it chose.
std::string description();

/// c = alpha * a b + beta * c on the calling thread; matrices without a unit stride are multiplied by plain loops. load
/// must have succeeded.
void multiply(const matrix &c, const matrix &a, const matrix &b, float alpha, float beta);

} // namespace windlass::rt::cpu::openblas

#endif
