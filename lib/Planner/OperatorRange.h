// The operators of a micro-batch that one problem plans.
#ifndef WINDLASS_LIB_PLANNER_OPERATORRANGE_H
#define WINDLASS_LIB_PLANNER_OPERATORRANGE_H

#include "mlir/Dialect/Func/IR/FuncOps.h"

#include "llvm/ADT/DenseSet.h"

namespace windlass::planner {

/// A run of forward operators of `@microbatch`, in program order, with all operators that differentiate them: what a
/// stage of a pipeline computes. Only compute operators count, not reads of parameters nor stashes.
class OperatorRange {
public:
  /// Takes all operators.
  explicit OperatorRange(mlir::func::FuncOp microbatch);
  /// Takes the forward operators [begin, end) of `countForward`, and the operators that differentiate them.
  OperatorRange(mlir::func::FuncOp microbatch, int64_t begin, int64_t end);

  /// Returns the number of compute operators that differentiate nothing.
  static int64_t countForward(mlir::func::FuncOp microbatch);

  mlir::func::FuncOp getFunction() const { return function; }
  bool isWhole() const { return covers; }
  /// Whether a compute operator is in the range.
  bool contains(mlir::Operation *op) const { return members.contains(op); }

private:
  mlir::func::FuncOp function;
  bool covers;
  llvm::DenseSet<mlir::Operation *> members;
};

} // namespace windlass::planner

#endif
