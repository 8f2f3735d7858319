// The chunks of a pipeline, by the operators of level L3b.
#ifndef WINDLASS_LIB_CONVERSION_PLANTOSCHED_CHUNKNUMBERS_H
#define WINDLASS_LIB_CONVERSION_PLANTOSCHED_CHUNKNUMBERS_H

#include "windlass/Dialect/Plan/IR/PlanOps.h"
#include "windlass/Dialect/Train/IR/TrainConventions.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace windlass::sched {

/// Numbers the chunks of the operators of a function, `@microbatch` or `@evaluate`.
class ChunkNumbers {
public:
  /// Takes the module's `plan.pipeline`; null for a step of one chunk, whose operators have no numbers.
  explicit ChunkNumbers(plan::PipelineAttr pipeline) : pipeline(pipeline) {}

  /// Labels the next operator of a forward pass: it belongs to the chunk that has begun last.
  void labelForward(mlir::Operation &op) {
    if (!pipeline)
      return;
    auto id = op.getAttrOfType<mlir::StringAttr>(train::kIdAttr);
    while (next < pipeline.getBegins().size() && pipeline.getBegins()[next] == id)
      ++next;
    if (id)
      chunks[id] = static_cast<int64_t>(next);
    label(op, static_cast<int64_t>(next));
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
    if (!pipeline || next == pipeline.getBegins().size())
      return mlir::success();
    return function.emitError("has no operator ")
           << pipeline.getBegins()[next] << " with which chunk " << next + 1 << " could begin behind chunk " << next;
  }

private:
  static void label(mlir::Operation &op, int64_t chunk) {
    op.setAttr(plan::kChunkAttr, mlir::IntegerAttr::get(mlir::IntegerType::get(op.getContext(), 64), chunk));
  }

  plan::PipelineAttr pipeline;
  /// The number of chunks that have begun behind the first.
  size_t next = 0;
  llvm::DenseMap<mlir::StringAttr, int64_t> chunks;
};

} // namespace windlass::sched

#endif
