// What memory and events say of commands that change places.
#ifndef WINDLASS_DIALECT_SCHED_ANALYSIS_COMMANDMOVES_H
#define WINDLASS_DIALECT_SCHED_ANALYSIS_COMMANDMOVES_H

#include "windlass/Dialect/Sched/IR/Place.h"

#include "llvm/ADT/StringSet.h"

#include <optional>

namespace windlass::sched {

mlir::MemRefType typeOf(mlir::Value buffer);

/// The number of the value that the buffer holds; buffers of other values may have its bytes before and after.
std::optional<int64_t> getStorage(mlir::Value buffer);

/// A kernel, a map or a collective.
bool isCommand(mlir::Operation *op);

/// What a command reads and writes.
std::pair<mlir::ValueRange, mlir::ValueRange> getInsAndOuts(mlir::Operation *command);

/// Whether the kernel, which adds up `terms` of its operands, may write those results while it reads those operands:
/// none share a byte but where the kernel may work in place, and no two results do.
bool canWriteWhileReading(KernelKind kernel, mlir::ValueRange ins, mlir::ValueRange outs, size_t terms = 0);

/// Whether `earlier` may run right before `later` of the same block instead, as far as what stands between them says,
/// but for `others`.
bool canMove(mlir::Operation *earlier, mlir::Operation *later, llvm::ArrayRef<mlir::Operation *> others = {});

/// Whether `later` may run right behind `earlier` of the same block and stream instead, as far as what stands between
/// them says, but for `others`. Unlike a move down, it may pass records.
bool canMoveUp(LaunchMapOp later, mlir::Operation *earlier, llvm::ArrayRef<mlir::Operation *> others = {});

/// What moves beside an op belongs to the same instance of a repeated block, which it would cut in two otherwise.
void copyRepeat(mlir::Operation *from, mlir::Operation *to);

/// Erases those of the functions named that no map applies any more.
void dropUnusedFunctions(ProgramOp program, const llvm::StringSet<> &names);

} // namespace windlass::sched

#endif
