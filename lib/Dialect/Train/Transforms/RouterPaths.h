// The operators and weights that the choice of experts depends on, which keep f32.
#ifndef WINDLASS_LIB_DIALECT_TRAIN_TRANSFORMS_ROUTERPATHS_H
#define WINDLASS_LIB_DIALECT_TRAIN_TRANSFORMS_ROUTERPATHS_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "windlass/Dialect/Train/IR/TrainOps.h"

#include "llvm/ADT/DenseSet.h"

namespace windlass::train {

/// The operators and weights of the forward pass that lead to a choice of experts.
struct RouterPaths {
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
RouterPaths findRouterPaths(llvm::ArrayRef<mlir::func::FuncOp> functions);

} // namespace windlass::train

#endif
