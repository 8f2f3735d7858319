// Deterministic random values: of parameters and micro-batches for runs that are given none, and keys of dropout.
#ifndef WINDLASS_LIB_INTERPRETER_RANDOM_H
#define WINDLASS_LIB_INTERPRETER_RANDOM_H

#include "windlass/Interpreter/Tensor.h"

namespace windlass::interpreter {

/// Returns samples of N(mean, deviation) rounded to float, so that both precisions start from the same values. They
/// depend on seed, name and element index only (Philox 4x32-10, Salmon et al., SC 2011).
Tensor randomNormal(ElementKind kind, llvm::ArrayRef<int64_t> shape, double mean, double deviation, uint64_t seed,
                    llvm::StringRef name);

/// Returns integers in [0, bound).
Tensor randomIntegers(ElementKind kind, llvm::ArrayRef<int64_t> shape, int64_t bound, uint64_t seed,
                      llvm::StringRef name);

/// Returns the keys [samples, masks] of micro-batch k, as the runtime makes them.
Tensor dropoutKeys(llvm::ArrayRef<int64_t> shape, uint64_t seed, int64_t k);

} // namespace windlass::interpreter

#endif
