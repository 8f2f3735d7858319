// Whether commands may change places, as far as memory and events allow it.
#ifndef WINDLASS_DIALECT_SCHED_ANALYSIS_COMMANDMOVES_H
#define WINDLASS_DIALECT_SCHED_ANALYSIS_COMMANDMOVES_H

#include "windlass/Dialect/Sched/IR/Place.h"

#include "llvm/ADT/StringSet.h"

#include <optional>

namespace windlass::sched {

mlir::MemRefType typeOf(mlir::Value buffer);

/// Returns the number of the value that the buffer holds (`sched.storage`); none where the buffer does not say it.
/// Buffers of other values may have its bytes before and after.
std::optional<int64_t> getStorage(mlir::Value buffer);

/// Whether `op` is a launch of a kernel, a map or a collective.
bool isCommand(mlir::Operation *op);

/// Returns the buffers that a command reads, and the buffers that it writes.
std::pair<mlir::ValueRange, mlir::ValueRange> getInsAndOuts(mlir::Operation *command);

/// Whether the kernel, which adds up `terms` of its operands, may write the results `outs` while it reads the operands
/// `ins`: a result shares a byte with an operand only where the kernel may work in place, and no two results share one.
bool canWriteWhileReading(KernelKind kernel, mlir::ValueRange ins, mlir::ValueRange outs, size_t terms = 0);

/// Whether `earlier` may be moved to right before `later`, in the same block: no operation between them except `others`
/// forbids it.
bool canMove(mlir::Operation *earlier, mlir::Operation *later, llvm::ArrayRef<mlir::Operation *> others = {});

/// Whether `later` may be moved to right behind `earlier`, in the same block and stream: no operation between them
/// except `others` forbids it. Unlike a move down, a move up may pass records.
bool canMoveUp(LaunchMapOp later, mlir::Operation *earlier, llvm::ArrayRef<mlir::Operation *> others = {});

/// Moves an operation to right before or behind another one of its block. `Operation::moveBefore` does the same, but
/// after it the next `isBeforeInBlock` numbers the whole block anew.
void moveBefore(mlir::Operation *op, mlir::Operation *place);
void moveBehind(mlir::Operation *op, mlir::Operation *place);

/// Gives `to`, which moves next to `from`, the same `plan.repeat`: otherwise it would cut an instance of a repeated
/// block in two.
void copyRepeat(mlir::Operation *from, mlir::Operation *to);

/// Erases the functions among `names` that no map applies any more.
void dropUnusedFunctions(ProgramOp program, const llvm::StringSet<> &names);

} // namespace windlass::sched

#endif
