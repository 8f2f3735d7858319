// What a choice of experts depends on.
#ifndef WINDLASS_LIB_DIALECT_TRAIN_TRANSFORMS_CHOICES_H
#define WINDLASS_LIB_DIALECT_TRAIN_TRANSFORMS_CHOICES_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "windlass/Dialect/Train/IR/TrainOps.h"

#include "llvm/ADT/DenseSet.h"

namespace windlass::train {

/// The operators of the forward pass that lead to a choice.
struct ChoicePaths {
  /// The operators from a router's product to the numbers that are compared.
  llvm::DenseSet<mlir::Operation *> routers;
  /// The operators that routers read, by first results: norms, and the sums that carry values past the layers, from the
  /// embedding on, without products of layers.
  llvm::DenseSet<mlir::Operation *> carried;
  /// The names of the weights that no other operator of the forward pass reads.
  llvm::DenseSet<mlir::StringAttr> weights;

  bool contains(mlir::Operation *op) const { return routers.contains(op) || carried.contains(op); }
};

/// Returns the paths to choices in functions that hold the same forward pass; empty where nothing chooses by the
/// largest of several numbers.
ChoicePaths findChoicePaths(llvm::ArrayRef<mlir::func::FuncOp> functions);

} // namespace windlass::train

#endif
