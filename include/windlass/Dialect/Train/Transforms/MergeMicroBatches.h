// Several micro-batches of a graph as one.
#ifndef WINDLASS_DIALECT_TRAIN_TRANSFORMS_MERGEMICROBATCHES_H
#define WINDLASS_DIALECT_TRAIN_TRANSFORMS_MERGEMICROBATCHES_H

#include "windlass/Dialect/Train/IR/TrainOps.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

#include <optional>
#include <string>

namespace windlass::train {

/// The most micro-batches that are merged: each has a copy of its own of the loss.
constexpr int64_t kMostMerged = 1 << 10;

/// Returns why the micro-batches of the graph `@loss` cannot be merged, as the end of a sentence; nothing where they
/// can.
std::optional<std::string> whyNotMerged(mlir::func::FuncOp loss);

/// Returns the losses whose mean is `loss`, which the function of merged micro-batches computes: a tensor with one
/// element for each. Null where none are merged.
mlir::Value getMergedLosses(mlir::ModuleOp module, mlir::Value loss);

/// Returns the elements of such a tensor, one loss for each micro-batch.
llvm::SmallVector<mlir::Value> getEachLoss(mlir::Value losses);

} // namespace windlass::train

#endif
