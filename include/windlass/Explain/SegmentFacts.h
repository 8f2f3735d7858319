// The choice of a plan for the segment of an operator: kept, or recomputed in the backward pass.
#ifndef WINDLASS_EXPLAIN_SEGMENTFACTS_H
#define WINDLASS_EXPLAIN_SEGMENTFACTS_H

#include "windlass/Dialect/Plan/IR/PlanOps.h"

#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/StringMap.h"

#include <string>

namespace windlass {

struct SegmentFacts {
  /// The name of the block, and of the part of it that the segment is; empty for all of it.
  std::string block, part;
  bool isRecomputed = false;
  /// The bytes of a rank that recompute of the segment frees between forward and backward pass, and the FLOPs of a rank
  /// that it costs per micro-batch. A recomputed segment adds to the recomputed ones behind it; a kept one counts as if
  /// it alone were recomputed.
  int64_t freedBytes = 0;
  double flops = 0;
};

/// Returns the facts by the ids of the operators of `@microbatch` that are in a segment. The module is at L3, before
/// reshards.
llvm::StringMap<SegmentFacts> describeSegments(mlir::ModuleOp planned);

} // namespace windlass

#endif
