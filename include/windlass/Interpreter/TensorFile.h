// Named tensors in a safetensors file: initial values, micro-batches, and what a run leaves.
#ifndef WINDLASS_INTERPRETER_TENSORFILE_H
#define WINDLASS_INTERPRETER_TENSORFILE_H

#include "windlass/Interpreter/Tensor.h"

#include "llvm/Support/Error.h"

#include <map>
#include <string>

namespace windlass::interpreter {

/// Tensors by name, in order, so that what is printed and written does not depend on chance.
using TensorMap = std::map<std::string, Tensor>;

/// Reads F64, F32, I64, I32 and BOOL tensors. The file is untrusted: header, shapes and offsets are checked against its
/// size. Errors name the file.
llvm::Expected<TensorMap> readTensorFile(llvm::StringRef path);

/// Writes every tensor as F64, the one type that the comparison needs.
llvm::Error writeTensorFile(llvm::StringRef path, const TensorMap &tensors);

} // namespace windlass::interpreter

#endif
