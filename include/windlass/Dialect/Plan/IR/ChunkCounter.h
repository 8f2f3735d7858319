// Which chunk of a pipeline the operators of a forward pass belong to.
#ifndef WINDLASS_DIALECT_PLAN_IR_CHUNKCOUNTER_H
#define WINDLASS_DIALECT_PLAN_IR_CHUNKCOUNTER_H

#include "windlass/Dialect/Plan/IR/PlanOps.h"
#include "windlass/Dialect/Train/IR/TrainConventions.h"

namespace windlass::plan {

/// Returns the id of the model's operator that an op is, or that it replaces with others; null where it has none.
inline mlir::StringAttr getModelId(mlir::Operation &op) {
  auto whole = op.getAttrOfType<mlir::StringAttr>(kSplitOfAttr);
  return whole ? whole : op.getAttrOfType<mlir::StringAttr>(train::kIdAttr);
}

/// Follows the operators of a function in their order: each belongs to the chunk that has begun last.
class ChunkCounter {
public:
  /// Takes the module's `plan.pipeline`; null for a step of one chunk.
  explicit ChunkCounter(PipelineAttr pipeline) {
    if (pipeline)
      begins = pipeline.getBegins();
  }

  /// Returns the chunk of the next operator.
  int64_t advance(mlir::Operation &op) {
    while (chunk < begins.size() && begins[chunk] == getModelId(op))
      ++chunk;
    return getChunk();
  }

  /// Returns the chunk of the last operator.
  int64_t getChunk() const { return static_cast<int64_t>(chunk); }

private:
  llvm::ArrayRef<mlir::StringAttr> begins;
  size_t chunk = 0;
};

} // namespace windlass::plan

#endif
