// What a plan does with the segment of an operator: kept, or run again in the backward pass.
#ifndef WINDLASS_EXPLAIN_SEGMENTFACTS_H
#define WINDLASS_EXPLAIN_SEGMENTFACTS_H

#include "windlass/Dialect/Plan/IR/PlanOps.h"

#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/StringMap.h"

#include <string>

namespace windlass {

struct SegmentFacts {
  /// The block, and which part of it the segment is; empty for all of it.
  std::string block, part;
  bool runsAgain = false;
  /// Of a rank: bytes that it frees between forward and backward pass beside the other segments that are run again, and
  /// FLOPs that it costs a micro-batch; of one that is kept, what it would alone.
  int64_t freedBytes = 0;
  double flops = 0;
};

/// By the ids of the operators of `@microbatch` that are in a segment. The module is at L3, before reshards.
llvm::StringMap<SegmentFacts> describeSegments(mlir::ModuleOp planned);

} // namespace windlass

#endif
