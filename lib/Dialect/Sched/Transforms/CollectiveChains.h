// The operations of L4 around collectives that move parameters or gradients: from a resource, or to one.
#ifndef WINDLASS_LIB_DIALECT_SCHED_TRANSFORMS_COLLECTIVECHAINS_H
#define WINDLASS_LIB_DIALECT_SCHED_TRANSFORMS_COLLECTIVECHAINS_H

#include "windlass/Dialect/Sched/IR/SchedOps.h"

#include "llvm/ADT/DenseSet.h"

namespace windlass::sched {

/// A gather of weights from their shards, or a copy of a weight from the host.
struct Gather {
  /// The last collective, or the copy, behind which the weights are whole and on the device.
  mlir::Operation *op = nullptr;
  /// The loads, copies, collectives and views up to the values that operators use, each behind what it uses.
  llvm::SmallVector<mlir::Operation *, 4> chain;
  mlir::Operation *firstUse = nullptr;
  /// The bytes of the whole weights.
  int64_t bytes = 0;
};

/// Whether the parts of members that divide `dim` of a value are contiguous, one behind the other.
bool isInBlocks(mlir::RankedTensorType whole, int64_t dim);

/// Returns the gathers of a function's weights that can move, in the order in which their results are first used. A
/// gather cannot move where its resource is written in the function, or where a copy puts the blocks of its members in
/// order: the compute stream would wait where the gather is begun.
llvm::SmallVector<Gather> findGathers(mlir::Block &block);

/// Returns in the same order the copies of weights from the host that can move and that no gather uses.
llvm::SmallVector<Gather> findFetches(mlir::Block &block);

/// Puts gathers and fetches in the order in which their results are first used.
void sortByUse(llvm::MutableArrayRef<Gather> gathers);

/// A collective each of whose results does nothing but change a resource that no other operation of the function
/// touches, so that the change can be made later.
struct Delivery {
  mlir::Operation *op = nullptr;
  /// The views of the results, and the operations that store them or add them to resources.
  llvm::SmallVector<mlir::Operation *, 4> chain;
  /// The bytes of the whole values: of the results of a gather, the operands of a scatter; and of those of them that
  /// need memory of their own, because they are not read or written where they stand between functions.
  int64_t bytes = 0, ownBytes = 0;
};

/// Returns the gathers and scatters of a function that are deliveries, in their order.
llvm::SmallVector<Delivery> findDeliveries(mlir::Block &block);

/// Returns the bytes of all tensors.
int64_t getBytes(mlir::TypeRange types);

} // namespace windlass::sched

#endif
