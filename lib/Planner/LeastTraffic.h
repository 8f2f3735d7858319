// The bytes that operators read from memory and write to it whatever passes fuse.
#ifndef WINDLASS_LIB_PLANNER_LEASTTRAFFIC_H
#define WINDLASS_LIB_PLANNER_LEASTTRAFFIC_H

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace windlass::planner {

/// Whether the operator is one of the backward pass.
bool isBackward(mlir::Operation *op);
bool isNorm(mlir::Operation *op);
bool isNormGradient(mlir::Operation *op);
/// Whether the operator's arithmetic is what counts: products, convolutions, attention.
bool isArithmetic(mlir::Operation *op);
/// Whether the operator becomes a map. A sum does unless kernels may add all of its terms to one buffer.
bool isMap(mlir::Operation *op);

/// The operands that an operator is certain to read from memory, the results that it is certain to write, and whether
/// the command that does so is its own.
struct Traffic {
  llvm::SmallVector<unsigned, 4> operands, results;
  bool hasCommand = true;
};

using Operators = llvm::DenseSet<mlir::Operation *>;

/// Finds the traffic of a function's operators.
class LeastTraffic {
public:
  /// `copied` are the operators that run once more in each chunk that needs them. Refers to it.
  LeastTraffic(mlir::func::FuncOp function, const Operators &copied);

  /// Returns the traffic of an operator; nothing for one that may cost nothing.
  std::optional<Traffic> get(mlir::Operation *op) const;

private:
  /// Finds the values of `behind`.
  void findBehind(mlir::Block &block);
  Traffic getMapTraffic(mlir::Operation *op) const;

  const Operators &copied;
  /// The roots of operands that are in memory before the element-wise function which reads them runs, as a kernel that
  /// reads the same root has to run before: what made the value then stands in another command.
  llvm::DenseSet<std::pair<mlir::Operation *, mlir::Value>> behind;
};

} // namespace windlass::planner

#endif
