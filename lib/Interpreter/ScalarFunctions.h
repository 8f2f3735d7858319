// Fused scalar functions, applied to tensors of the iteration space one op at a time.
#ifndef WINDLASS_LIB_INTERPRETER_SCALARFUNCTIONS_H
#define WINDLASS_LIB_INTERPRETER_SCALARFUNCTIONS_H

#include "windlass/Interpreter/Tensor.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace windlass::interpreter {

/// Returns the function's results for every point of the space; inputs have the shape `space`. Reports errors at the op
/// that fails.
mlir::FailureOr<llvm::SmallVector<Tensor>> applyScalarFunction(mlir::func::FuncOp function,
                                                               llvm::ArrayRef<Tensor> inputs,
                                                               llvm::ArrayRef<int64_t> space, Precision precision);

/// Returns the scalar function `name` in the scope of `user`; reports an error where there is none with that number of
/// arguments and results.
mlir::FailureOr<mlir::func::FuncOp> scalarFunctionOf(mlir::Operation *user, mlir::FlatSymbolRefAttr name,
                                                     size_t arguments, size_t results);

} // namespace windlass::interpreter

#endif
