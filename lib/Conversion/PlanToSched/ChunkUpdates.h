// The reduction of gradients and the update of weights, of the chunks that make these gradients.
#ifndef WINDLASS_LIB_CONVERSION_PLANTOSCHED_CHUNKUPDATES_H
#define WINDLASS_LIB_CONVERSION_PLANTOSCHED_CHUNKUPDATES_H

#include "ChunkPrograms.h"

namespace windlass::sched {

/// The chunks of each parameter of the module, by symbol: of those that make its gradient, in their order. They are on
/// different positions, each of which holds and trains a copy.
using ParameterChunks = llvm::DenseMap<mlir::StringAttr, llvm::SmallVector<int64_t, 1>>;

/// Builds the functions of role `reduce` and `update` of all chunks.
class ChunkUpdates {
public:
  /// Takes the whole program and the chunks of each trained parameter.
  ChunkUpdates(ProgramOp whole, ChunkPrograms &programs, const schedule::Placement &placement,
               const ParameterChunks &chunks);

  /// Builds the reduction of a chunk: buckets have those gradients that the chunk makes.
  mlir::func::FuncOp buildReduce(int64_t chunk);

  /// Lets the last reduction of a position add up the gradients that other positions too make a part of.
  void buildTiedSums(mlir::func::FuncOp lastReduce);

  /// Builds the update of a chunk. The first one of a position (`isFirst`) computes the norm of all gradients, with
  /// the sum of squares over all positions; others read it.
  mlir::LogicalResult buildUpdate(int64_t chunk, bool isFirst);

private:
  /// Returns the chunks that a resource belongs to: of its parameter, or of the loss; none for one that all have.
  llvm::SmallVector<int64_t, 1> getChunks(mlir::FlatSymbolRefAttr resource) const;
  /// Returns the chunks of the loads that an operator of the reduction depends on.
  llvm::SmallVector<int64_t, 1> getChunks(mlir::Operation *op) const;
  /// Returns the operation of an update that stores the norm of all gradients; null where none does.
  StoreOp findNormStore(mlir::func::FuncOp update) const;
  /// Whether a part of a norm is of gradients of the position that runs `chunk`. Those of several positions count in
  /// the first of these.
  bool isOfPosition(mlir::Value value, int64_t chunk) const;

  /// Builds what `value` is on the position that runs `chunk`, where only its own gradients count.
  mlir::Value buildOwnSum(mlir::OpBuilder &builder, mlir::Value value, int64_t chunk, mlir::IRMapping &mapping);
  /// Builds `value` and what it depends on.
  mlir::Value build(mlir::OpBuilder &builder, mlir::Value value, int64_t chunk, mlir::IRMapping &mapping);
  mlir::LogicalResult buildNorm(mlir::OpBuilder &builder, int64_t chunk, mlir::IRMapping &mapping);

  ProgramOp whole;
  /// The parameters of the module by their names.
  mlir::SymbolTable module;
  ChunkPrograms &programs;
  const schedule::Placement &placement;
  const ParameterChunks &chunks;
};

} // namespace windlass::sched

#endif
