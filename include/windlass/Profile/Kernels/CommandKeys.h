// Commands of L5 by what decides how long they take.
#ifndef WINDLASS_PROFILE_KERNELS_COMMANDKEYS_H
#define WINDLASS_PROFILE_KERNELS_COMMANDKEYS_H

#include "windlass/Dialect/Sched/IR/SchedOps.h"
#include "windlass/Profile/CostModel.h"

#include <map>
#include <string>

namespace windlass {

/// Commands with one text take the same time: kernel or fused function, settings, operands with element type, local
/// shape, strides where they are not dense, and which of them are one buffer. For example
/// `matmul(f32[64x768], f32[768x3072]{1,768}) -> f32[64x3072] {batch_rank = 0 : i64, contract_rank = 1 : i64}`; a fused
/// function is `map.<operators>.<hash of its body>`. Names, places and the model are no part of it.
struct CommandKey {
  std::string text;
  OperatorWork work;
};

/// A buffer that a command reads or writes; operands at one place count as one.
struct CommandOperand {
  mlir::Type type;
  /// The number of elements from the first to the last, gaps included.
  int64_t elements = 0;
  /// The exclusive upper bound of integers in it, so that they are valid indices.
  int64_t limit = 0;
  bool isRead = false;
};

/// The keys of a module's `sched.launch` and `sched.launch_map`.
class CommandKeys {
public:
  explicit CommandKeys(sched::ProgramOp program) : program(program) {}

  /// Returns the key of `command`; `isLater` says that it runs in a micro-batch of the step after the first.
  const CommandKey &get(mlir::Operation *command, bool isLater);

private:
  /// What the keys of all commands of one fused function share.
  struct Function {
    std::string text;
    bool isTranscendental = false;
  };

  const Function &getFunction(mlir::FlatSymbolRefAttr name);
  const std::string &getTypeText(mlir::MemRefType type);
  sched::ProgramOp program;
  std::map<std::pair<mlir::Operation *, bool>, CommandKey> keys;
  std::map<std::string, Function> functions;
  llvm::DenseMap<mlir::Type, std::string> types;
};

/// Returns the type of one of the equal blocks that the first dim of `type` counts.
mlir::MemRefType dropBlocks(mlir::MemRefType type);

/// Returns whether `command` adds to its results in later micro-batches, and so has two keys.
bool addsLater(mlir::Operation *command);

/// Returns the operands of `command` in the order in which their places are first used.
std::vector<CommandOperand> getOperands(mlir::Operation *command, bool isLater);

} // namespace windlass

#endif
