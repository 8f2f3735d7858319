// How a function of all chunks divides into functions of one chunk each, and what passes between these.
#ifndef WINDLASS_LIB_CONVERSION_PLANTOSCHED_CHUNKFLOW_H
#define WINDLASS_LIB_CONVERSION_PLANTOSCHED_CHUNKFLOW_H

#include "windlass/Dialect/Sched/IR/SchedOps.h"

#include "llvm/ADT/SetVector.h"

#include <functional>
#include <optional>

namespace windlass::sched {

/// The flow of values through the chunks of one function of L4, along the model or back.
///
/// An operator belongs to the chunk of its label, or else to the last chunk of those that make its operands. What is
/// made of weights alone belongs to the first chunk that reads it. Loads, constants, what follows from inputs, and what
/// is made of weights for several positions, belong to none: each chunk that needs one has a copy.
class ChunkFlow {
public:
  /// Takes a function and the position of each chunk. Values pass from each chunk to the next, or with `isBackward` to
  /// the one before.
  ChunkFlow(mlir::func::FuncOp function, llvm::ArrayRef<int64_t> positionOf, bool isBackward);

  /// Divides the operators. Stores and sums of values that no chunk makes belong to chunk `home` of their resource.
  /// `isOfChunk` says whether an argument of the function is a value of a chunk, and not of those that are copied;
  /// `madeIn` gives the chunk of a load that stands for a value which a chunk makes in training.
  void assign(llvm::function_ref<int64_t(mlir::FlatSymbolRefAttr resource)> home,
              llvm::function_ref<bool(mlir::BlockArgument)> isOfChunk,
              llvm::function_ref<std::optional<int64_t>(LoadOp)> madeIn);

  /// Returns the chunk of an operator; nothing for one that is copied.
  std::optional<int64_t> getChunk(mlir::Operation *op) const;

  /// Makes a value available in `chunk`, for `user`; fails where a chunk would have to wait for a later one. `provide`
  /// makes an argument of the function available, and returns the chunk that it then passes on from.
  using ProvideArgument = llvm::function_ref<int64_t(mlir::BlockArgument, int64_t chunk)>;
  mlir::LogicalResult require(mlir::Value value, int64_t chunk, mlir::Operation *user, ProvideArgument provide);

  /// Makes the operands of all operators available in their chunks.
  mlir::LogicalResult requireOperands(ProvideArgument provide);

  /// Returns the chunk that a chunk passes values on to; it may be out of range.
  int64_t getNext(int64_t chunk) const { return chunk + step; }

  /// Returns the values that a chunk receives, in the order in which they are declared on both sides.
  llvm::ArrayRef<mlir::Value> getReceived(int64_t chunk) const { return received[chunk].getArrayRef(); }

  /// Whether a chunk's function has an operator.
  bool isIn(mlir::Operation *op, int64_t chunk) const;

  mlir::func::FuncOp getFunction() const { return function; }

private:
  /// Whether a chunk runs behind another one.
  bool isLater(int64_t chunk, int64_t other) const { return (chunk - other) * step > 0; }
  /// Divides what is made of weights alone, as by a gather: it may stand before the chunk that reads it.
  void assignToReaders(llvm::function_ref<bool(mlir::Operation &)> isOfWeights);
  /// Lets values pass from chunk `from` to chunk `to`; fails at `user` where that is the wrong way.
  mlir::LogicalResult pass(mlir::Value value, int64_t from, int64_t to, mlir::Operation *user);

  mlir::func::FuncOp function;
  llvm::ArrayRef<int64_t> positionOf;
  int64_t step;
  llvm::DenseMap<mlir::Operation *, int64_t> chunkOf;
  std::vector<llvm::SetVector<mlir::Value>> received;
  std::vector<llvm::DenseSet<mlir::Operation *>> copies;
};

} // namespace windlass::sched

#endif
