// Which operators make and read the elements of a value, whatever views and stashes are between.
#ifndef WINDLASS_LIB_PLANNER_MAKERS_H
#define WINDLASS_LIB_PLANNER_MAKERS_H

#include "mlir/IR/Operation.h"

namespace windlass::planner {

/// Whether the operator makes no command of its own, but names bytes that others have made.
bool isPassive(mlir::Operation *op);

/// Returns the operator that made the elements of a value; null for arguments.
mlir::Operation *findMaker(mlir::Value value);

/// Returns the value as it was made, before it was stashed, reshaped or transposed.
mlir::Value findRoot(mlir::Value value);

/// Calls `visit` with each operator that reads the elements of a value and is no view of them.
void forEachReader(mlir::Value value, llvm::function_ref<void(mlir::Operation *)> visit);

} // namespace windlass::planner

#endif
