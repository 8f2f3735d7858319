// The chunks of a pipeline, by the operators of level L3b.
#ifndef WINDLASS_LIB_CONVERSION_PLANTOSCHED_CHUNKNUMBERS_H
#define WINDLASS_LIB_CONVERSION_PLANTOSCHED_CHUNKNUMBERS_H

#include "windlass/Dialect/Plan/IR/ChunkCounter.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace windlass::sched {

/// Numbers the chunks of the operators of a function, `@microbatch` or `@evaluate`.
class ChunkNumbers {
public:
  /// Takes the module's `plan.pipeline`; null for a step of one chunk, whose operators have no numbers.
  explicit ChunkNumbers(plan::PipelineAttr pipeline) : pipeline(pipeline), counter(pipeline) {}

  /// Labels the next operator of a forward pass: it belongs to the chunk that has begun last.
  void labelForward(mlir::Operation &op) {
    if (!pipeline)
      return;
    int64_t chunk = counter.advance(op);
    if (mlir::StringAttr id = plan::getModelId(op))
      chunks[id] = chunk;
    label(op, chunk);
  }

  /// Labels an operator of the backward pass that names an operator of the forward pass: an adjoint or a recomputed
  /// one. The chunks of others follow from what they read (`cutChunks`).
  void labelBackward(mlir::Operation &op) {
    auto forward = op.getAttrOfType<mlir::StringAttr>(train::kForwardAttr);
    if (auto found = chunks.find(forward); forward && found != chunks.end())
      label(op, found->second);
  }

  /// Checks that a function has the first operators of all chunks, in their order.
  mlir::LogicalResult checkAll(mlir::func::FuncOp function) const {
    int64_t last = counter.getChunk();
    if (!pipeline || last + 1 == pipeline.countChunks())
      return mlir::success();
    return function.emitError("has no operator ")
           << pipeline.getBegins()[last] << " with which chunk " << last + 1 << " could begin behind chunk " << last;
  }

private:
  static void label(mlir::Operation &op, int64_t chunk) {
    op.setAttr(plan::kChunkAttr, mlir::IntegerAttr::get(mlir::IntegerType::get(op.getContext(), 64), chunk));
  }

  plan::PipelineAttr pipeline;
  plan::ChunkCounter counter;
  llvm::DenseMap<mlir::StringAttr, int64_t> chunks;
};

} // namespace windlass::sched

#endif
