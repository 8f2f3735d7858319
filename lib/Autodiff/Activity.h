// The operators of @loss that are live, those that depend on nothing, and the values that carry a gradient.
#ifndef WINDLASS_LIB_AUTODIFF_ACTIVITY_H
#define WINDLASS_LIB_AUTODIFF_ACTIVITY_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "windlass/Dialect/Train/IR/TrainOps.h"

#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/SetVector.h"

namespace windlass::train {

struct Activity {
  /// The operators from which the loss can be reached, in order.
  llvm::SmallVector<mlir::Operation *> live;
  /// The live operators that depend on no argument and no parameter, except views that only others use.
  llvm::SetVector<mlir::Operation *> constantOps;
  /// The results of constant operators, other than splats, that operators depending on inputs use: results of @init.
  llvm::SetVector<mlir::Value> initValues;
  /// The values between a trainable parameter and the loss.
  llvm::DenseSet<mlir::Value> active;
  /// The trainable parameters of which a read is active, by symbol.
  llvm::DenseSet<mlir::StringAttr> activeParameters;
};

/// Analyzes `function`, which returns `loss`. Parameters are looked up in `module`.
Activity analyzeActivity(mlir::ModuleOp module, mlir::func::FuncOp function, mlir::Value loss);

/// Returns whether the operator is a constant of equal elements: as cheap to recompute as to pass on.
bool isSplatConstant(mlir::Operation *op);

} // namespace windlass::train

#endif
