// Executes a function on all ranks at once, op by op: the levels whose values are tensors.
#ifndef WINDLASS_LIB_INTERPRETER_SPMDEVALUATOR_H
#define WINDLASS_LIB_INTERPRETER_SPMDEVALUATOR_H

#include "Placement.h"
#include "windlass/Interpreter/Kernels.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace windlass::interpreter {

/// The results of an op, each with a tensor per rank.
using SpmdValues = llvm::SmallVector<RankValues, 2>;

/// Executes an op that is more than a kernel on each rank. Returns true with one entry per result, false where a kernel
/// is to be used, and failure after a diagnostic.
using SpecialOp =
    llvm::function_ref<mlir::FailureOr<bool>(mlir::Operation &, llvm::ArrayRef<RankValues>, SpmdValues &)>;
/// Returns the type of a rank's part of an op's result.
using LocalTypeOf = llvm::function_ref<mlir::RankedTensorType(mlir::OpResult)>;

/// Runs a function and returns the values of the operands of its return.
mlir::FailureOr<SpmdValues> runFunction(mlir::func::FuncOp function, SpmdValues arguments, int64_t ranks,
                                        Precision precision, SpecialOp special, LocalTypeOf localType);

/// Runs the kernel of an op on one rank; reports errors at the op.
mlir::FailureOr<llvm::SmallVector<Tensor>> runKernel(mlir::Operation &op, llvm::ArrayRef<Tensor> inputs,
                                                     llvm::ArrayRef<mlir::RankedTensorType> types, Precision precision);

} // namespace windlass::interpreter

#endif
