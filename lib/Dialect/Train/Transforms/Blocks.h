// Blocks of a model, found by the numbered components of its operators' scope paths.
#ifndef WINDLASS_LIB_DIALECT_TRAIN_TRANSFORMS_BLOCKS_H
#define WINDLASS_LIB_DIALECT_TRAIN_TRANSFORMS_BLOCKS_H

#include "windlass/Dialect/Train/IR/TrainOps.h"

#include "llvm/ADT/DenseSet.h"

#include <optional>
#include <string>

namespace windlass::train {

/// The fewest operators of a block: smaller ones are worth neither a table nor a place in a plan.
constexpr size_t kSmallestBlock = 3;

struct Place {
  std::string prefix;
  int64_t index = 0;
};

/// Returns the `depth`-th numbered component of a scope path: a number between other components, alone or at the end of
/// a name (`h.3.attn`, `layer3.conv`). The last component is the operator's own ordinal and does not count.
std::optional<Place> findPlace(llvm::StringRef id, unsigned depth);

/// Whether an operator of `@microbatch` belongs to its forward part.
bool isForward(mlir::Operation *op);

/// Returns the operators that depend on no weight.
llvm::DenseSet<mlir::Operation *> findWeightless(mlir::Block &body);

/// Returns the operators of `weightless` that serve several blocks, although they have the scope of one: masks and
/// rotary tables that the first block computes and all blocks read, and views of arguments.
llvm::DenseSet<mlir::Operation *> findShared(mlir::Block &body, const llvm::DenseSet<mlir::Operation *> &weightless,
                                             unsigned depth);

} // namespace windlass::train

#endif
