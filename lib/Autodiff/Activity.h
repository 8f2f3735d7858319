// What of @loss is live, what depends on nothing, and which values carry a gradient.
#ifndef WINDLASS_LIB_AUTODIFF_ACTIVITY_H
#define WINDLASS_LIB_AUTODIFF_ACTIVITY_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "windlass/Dialect/Train/IR/TrainOps.h"

#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/SetVector.h"

namespace windlass::train {

struct Activity {
  /// Operators from which the loss can be reached, in order.
  llvm::SmallVector<mlir::Operation *> live;
  /// Live operators that depend on no argument and no parameter, except views that only others use.
  llvm::SetVector<mlir::Operation *> constantOps;
  /// Results of constant operators, other than splats, that operators depending on inputs use: results of @init.
  llvm::SetVector<mlir::Value> initValues;
  /// Values between a trainable parameter and the loss.
  llvm::DenseSet<mlir::Value> active;
  /// Trainable parameters of which a read is active, by symbol.
  llvm::DenseSet<mlir::StringAttr> activeParameters;
};

/// `loss` is the value that `function` returns. Parameters are looked up in `module`.
Activity analyzeActivity(mlir::ModuleOp module, mlir::func::FuncOp function, mlir::Value loss);

/// A constant of equal elements: as cheap to make again as to pass on.
bool isSplatConstant(mlir::Operation *op);

} // namespace windlass::train

#endif
