// The reduction of gradients and the update of weights, of the chunks that make these gradients.
#ifndef WINDLASS_LIB_CONVERSION_PLANTOSCHED_CHUNKUPDATES_H
#define WINDLASS_LIB_CONVERSION_PLANTOSCHED_CHUNKUPDATES_H

#include "ChunkPrograms.h"

namespace windlass::sched {

/// The chunk of each parameter of the module, by symbol: of the one that makes its gradient.
using ParameterChunks = llvm::DenseMap<mlir::StringAttr, int64_t>;

/// Builds the functions of role `reduce` and `update` of all chunks.
class ChunkUpdates {
public:
  /// Takes the whole program, the chunk of each trained parameter, and the chunk that computes the loss.
  ChunkUpdates(ProgramOp whole, ChunkPrograms &programs, const ParameterChunks &chunks, int64_t lossChunk);

  /// Builds the reduction of a chunk: buckets have those gradients that the chunk makes.
  mlir::LogicalResult buildReduce(int64_t chunk);

  /// Builds the update of a chunk. The first one of a position (`isFirst`) computes the norm of all gradients, with
  /// the sum of squares over all positions; others read it.
  mlir::LogicalResult buildUpdate(int64_t chunk, bool isFirst);

private:
  /// Returns the chunk that a resource belongs to: of its parameter, or of the loss; nothing for one that all have.
  std::optional<int64_t> getChunk(mlir::FlatSymbolRefAttr resource) const;
  /// Returns the chunk of the loads that an operator of the reduction depends on.
  std::optional<int64_t> getChunk(mlir::Operation *op) const;
  /// Whether a part of a norm is of gradients of the position that runs `chunk`.
  bool isOfPosition(mlir::Value value, int64_t chunk) const;

  /// Builds what `value` is on the position that runs `chunk`, where only its own gradients count.
  mlir::Value buildOwnSum(mlir::OpBuilder &builder, mlir::Value value, int64_t chunk, mlir::IRMapping &mapping);
  /// Builds `value` and what it depends on.
  mlir::Value build(mlir::OpBuilder &builder, mlir::Value value, int64_t chunk, mlir::IRMapping &mapping);
  mlir::LogicalResult buildNorm(mlir::OpBuilder &builder, int64_t chunk, mlir::IRMapping &mapping);

  ProgramOp whole;
  ChunkPrograms &programs;
  const ParameterChunks &chunks;
  int64_t lossChunk;
};

} // namespace windlass::sched

#endif
