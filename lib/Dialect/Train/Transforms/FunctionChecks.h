// Checks that the verify passes of L1 and L2 share. Each reports everything that it finds.
#ifndef WINDLASS_LIB_DIALECT_TRAIN_TRANSFORMS_FUNCTIONCHECKS_H
#define WINDLASS_LIB_DIALECT_TRAIN_TRANSFORMS_FUNCTIONCHECKS_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "windlass/Dialect/Train/IR/TrainOps.h"

namespace windlass::train {

/// Checks that parameters have distinct logical names, that states name a weight, and that the module holds only
/// parameters and functions of the given names.
bool checkModule(mlir::ModuleOp module, llvm::ArrayRef<llvm::StringRef> functions);

/// Checks that the function is one block of operators of `train` with distinct ids (constants and hyperparameters need
/// none), has static tensors as arguments, and writes no parameter unless `mayWrite`.
bool checkFunction(mlir::func::FuncOp function, bool mayWrite);

} // namespace windlass::train

#endif
