// What memory and events say of commands that change places.
#ifndef WINDLASS_LIB_DIALECT_SCHED_TRANSFORMS_COMMANDMOVES_H
#define WINDLASS_LIB_DIALECT_SCHED_TRANSFORMS_COMMANDMOVES_H

#include "MemoryTimeline.h"

#include "windlass/Dialect/Sched/IR/SchedOps.h"

namespace windlass::sched {

mlir::MemRefType typeOf(mlir::Value buffer);
int64_t offsetOf(mlir::Value buffer);

/// The same elements in the same order.
bool isSame(mlir::Value a, mlir::Value b);

/// What a command reads and writes.
std::pair<mlir::ValueRange, mlir::ValueRange> getInsAndOuts(mlir::Operation *command);

/// From a buffer's first byte to its last.
ByteRange getBounds(mlir::Value buffer);

/// Whether buffers share a byte.
bool overlap(mlir::Value a, mlir::Value b);
bool overlap(mlir::ValueRange a, mlir::ValueRange b);

/// Whether `earlier` may run right before `later` of the same block instead, as far as what stands between them says,
/// but for `others`.
bool canMove(mlir::Operation *earlier, mlir::Operation *later, llvm::ArrayRef<mlir::Operation *> others = {});

} // namespace windlass::sched

#endif
