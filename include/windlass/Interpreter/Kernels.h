// Reference kernels: one per operator of `train`, for every level.
#ifndef WINDLASS_INTERPRETER_KERNELS_H
#define WINDLASS_INTERPRETER_KERNELS_H

#include "windlass/Interpreter/Tensor.h"

#include "mlir/IR/BuiltinAttributes.h"
#include "llvm/Support/Error.h"

#include <string>

namespace windlass::interpreter {

/// Returns whether `evaluate` knows the operator (`train.matmul`). Operators that touch module state or several ranks
/// (`train.read`, collectives) belong to the level runners and are not known here.
bool hasKernel(llvm::StringRef opName);

/// Returns all names with a kernel, sorted.
llvm::SmallVector<llvm::StringRef> kernelNames();

/// Computes an operator. Result shapes are given, so that attributes that hold global sizes do not matter on local
/// parts. `attributes` are the op's own; enumerations may be their attribute or a plain integer.
///
/// Sums of float elements (reductions, matrix products, norms) are added in double and rounded once, so that a
/// reference in f32 does not depend on how a sum was split more than it must.
llvm::Expected<llvm::SmallVector<Tensor>> evaluate(llvm::StringRef opName, mlir::DictionaryAttr attributes,
                                                   llvm::ArrayRef<Tensor> inputs,
                                                   llvm::ArrayRef<mlir::RankedTensorType> resultTypes,
                                                   Precision precision);

/// Returns the values of a constant attribute of that type.
llvm::Expected<Tensor> tensorOf(mlir::ElementsAttr value, mlir::RankedTensorType type, Precision precision);

} // namespace windlass::interpreter

#endif
