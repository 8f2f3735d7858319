// Globs that choose parameters by logical name.
#ifndef WINDLASS_LIB_DIALECT_TRAIN_TRANSFORMS_NAMEPATTERNS_H
#define WINDLASS_LIB_DIALECT_TRAIN_TRANSFORMS_NAMEPATTERNS_H

#include "mlir/IR/BuiltinOps.h"
#include "windlass/Dialect/Train/IR/TrainOps.h"

#include <string>

namespace windlass::train {

/// Calls `apply` once for every weight or buffer whose logical name a pattern matches, with the number of the first
/// that does. Fails for a pattern that is malformed or, being misspelt most often, matches nothing.
mlir::LogicalResult applyToMatches(mlir::ModuleOp module, llvm::ArrayRef<std::string> patterns, llvm::StringRef option,
                                   llvm::function_ref<void(ParameterOp, size_t pattern)> apply);

} // namespace windlass::train

#endif
