// Moves rows of tokens to the ranks with the experts of their choice only.
#ifndef WINDLASS_DIALECT_SCHED_TRANSFORMS_ROUTEROWS_H
#define WINDLASS_DIALECT_SCHED_TRANSFORMS_ROUTEROWS_H

#include "windlass/Dialect/Sched/IR/SchedOps.h"

namespace windlass::sched {

/// Rows of all tokens that are gathered or scattered over axes.
struct GatheredRows {
  mlir::ArrayAttr axes;
  int64_t bytes;
  /// The share of them that a member needs, where all experts are chosen equally often.
  double share;
};

/// Replaces gathers and scatters of rows around layers of experts, in a program at L4, by `sched.gather_rows` and
/// `sched.scatter_rows` where `wants` says so.
void routeRows(ProgramOp program, llvm::function_ref<bool(const GatheredRows &)> wants);

} // namespace windlass::sched

#endif
