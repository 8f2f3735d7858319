// Sums that kernels compute by adding to one buffer, without a map over all terms.
#ifndef WINDLASS_DIALECT_SCHED_ANALYSIS_ACCUMULATION_H
#define WINDLASS_DIALECT_SCHED_ANALYSIS_ACCUMULATION_H

#include "windlass/Dialect/Sched/IR/SchedOps.h"

namespace windlass::sched {

/// Whether the kernel of `op` can add all its results to what their buffers hold.
inline bool canAccumulate(mlir::Operation *op) {
  const KernelRow *row = findRow(op);
  if (!row)
    return false;
  if (row->accumulation == Accumulation::sums)
    return llvm::cast<train::ReduceOp>(op).getKind() == train::ReductionKind::sum;
  return row->accumulation == Accumulation::all;
}

/// Whether every term of the sum comes from such a kernel and is read by nothing else. The sum then needs no command of
/// its own: the norm's squares, the gradients of a tied weight, the paths through several projections.
inline bool isSummedByKernels(train::AccumulateOp op) {
  return llvm::isa<mlir::RankedTensorType>(op.getResult().getType()) &&
         llvm::all_of(op.getInputs(), [&](mlir::Value input) {
           mlir::Operation *producer = input.getDefiningOp();
           return producer && producer->getBlock() == op->getBlock() && input.hasOneUse() && canAccumulate(producer);
         });
}

} // namespace windlass::sched

#endif
