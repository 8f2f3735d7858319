// Executes a function on all ranks at once, op by op: the levels whose values are tensors.
#ifndef WINDLASS_LIB_INTERPRETER_SPMDEVALUATOR_H
#define WINDLASS_LIB_INTERPRETER_SPMDEVALUATOR_H

#include "Placement.h"
#include "windlass/Interpreter/Kernels.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace windlass::interpreter {

/// The results of an op, each with a tensor per rank.
using SpmdValues = llvm::SmallVector<RankValues, 2>;

/// What has become of an op: a kernel is to be used, it is done, or it waits for something outside of the function.
enum class Progress { kernel, done, waits };

/// Executes an op that is more than a kernel on each rank. Returns `done` with one entry per result, and failure after
/// a diagnostic.
using SpecialOp =
    llvm::function_ref<mlir::FailureOr<Progress>(mlir::Operation &, llvm::ArrayRef<RankValues>, SpmdValues &)>;
/// Returns the type of a rank's part of an op's result.
using LocalTypeOf = llvm::function_ref<mlir::RankedTensorType(mlir::OpResult)>;

/// A function that runs, op by op.
class FunctionRun {
public:
  FunctionRun(mlir::func::FuncOp function, int64_t ranks, Precision precision)
      : function(function), ranks(ranks), precision(precision) {}

  /// Begins at the first op.
  mlir::LogicalResult begin(SpmdValues arguments);
  /// Runs up to the end, or to an op that waits; returns whether it has come to the end.
  mlir::FailureOr<bool> advance(SpecialOp special, LocalTypeOf localType);
  /// Returns the values of the operands of the return, once it has come to the end.
  SpmdValues takeResults() { return std::move(operands); }

private:
  void define(mlir::Value value, RankValues &&parts);
  mlir::LogicalResult takeOperands(mlir::Operation &op);
  mlir::LogicalResult runOnRanks(mlir::Operation &op, LocalTypeOf localType, SpmdValues &results);

  mlir::func::FuncOp function;
  int64_t ranks;
  Precision precision;
  llvm::DenseMap<mlir::Value, RankValues> values;
  /// Uses that are still to come: a value is dropped after its last one.
  llvm::DenseMap<mlir::Value, int64_t> uses;
  /// The op that runs, and its operands; `isTaken` says whether they are there.
  mlir::Block::iterator next;
  SpmdValues operands;
  bool isTaken = false;
};

/// Runs a function of which no op waits, and returns the values of the operands of its return.
mlir::FailureOr<SpmdValues> runFunction(mlir::func::FuncOp function, SpmdValues arguments, int64_t ranks,
                                        Precision precision, SpecialOp special, LocalTypeOf localType);

/// Runs the kernel of an op on one rank; reports errors at the op.
mlir::FailureOr<llvm::SmallVector<Tensor>> runKernel(mlir::Operation &op, llvm::ArrayRef<Tensor> inputs,
                                                     llvm::ArrayRef<mlir::RankedTensorType> types, Precision precision);

} // namespace windlass::interpreter

#endif
