// The commands that read or write a value, for passes that fuse commands.
#ifndef WINDLASS_DIALECT_SCHED_ANALYSIS_COMMANDUSES_H
#define WINDLASS_DIALECT_SCHED_ANALYSIS_COMMANDUSES_H

#include "windlass/Dialect/Sched/IR/SchedOps.h"

namespace windlass::sched {

/// The commands that read or write each value (`getStorage`), each once, and those of one block in its order. Buffers
/// that do not say which value they hold count as one value.
class CommandUses {
public:
  /// Collects the commands of all functions of a program, or of one block.
  explicit CommandUses(ProgramOp program);
  explicit CommandUses(mlir::Block &block);

  llvm::ArrayRef<mlir::Operation *> of(mlir::Value buffer) const;
  llvm::SmallVector<mlir::Operation *> of(mlir::Value buffer, mlir::Block *block) const;

  void add(mlir::Operation *command);
  /// Removes a command; must be called before the command is erased.
  void remove(mlir::Operation *command);

private:
  llvm::DenseMap<int64_t, llvm::SmallVector<mlir::Operation *>> users;
};

} // namespace windlass::sched

#endif
