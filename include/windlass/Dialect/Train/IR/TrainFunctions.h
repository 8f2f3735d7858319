// The functions of levels L1 to L3, found by what they are: TrainConventions.h says what each of them does.
#ifndef WINDLASS_DIALECT_TRAIN_IR_TRAINFUNCTIONS_H
#define WINDLASS_DIALECT_TRAIN_IR_TRAINFUNCTIONS_H

#include "windlass/Dialect/Train/IR/TrainConventions.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"

namespace windlass::train {

// Each returns null where the module has no such function.

/// Returns the loss of a training graph (L1).
inline mlir::func::FuncOp getLossFunction(mlir::ModuleOp module) {
  return module.lookupSymbol<mlir::func::FuncOp>(kLossFunction);
}
/// Returns the function of the values that depend on no input or weight (L2, L3).
inline mlir::func::FuncOp getInitFunction(mlir::ModuleOp module) {
  return module.lookupSymbol<mlir::func::FuncOp>(kInitFunction);
}
/// Returns the forward and backward pass of a micro-batch (L2, L3).
inline mlir::func::FuncOp getMicrobatchFunction(mlir::ModuleOp module) {
  return module.lookupSymbol<mlir::func::FuncOp>(kMicrobatchFunction);
}
/// Returns the optimizer's update of all weights (L2, L3).
inline mlir::func::FuncOp getUpdateFunction(mlir::ModuleOp module) {
  return module.lookupSymbol<mlir::func::FuncOp>(kUpdateFunction);
}
/// Returns the evaluation of a micro-batch (L2, L3).
inline mlir::func::FuncOp getEvaluateFunction(mlir::ModuleOp module) {
  return module.lookupSymbol<mlir::func::FuncOp>(kEvaluateFunction);
}

} // namespace windlass::train

#endif
