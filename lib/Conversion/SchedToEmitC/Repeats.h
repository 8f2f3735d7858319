// Finds the blocks of commands that repeat but for offsets and events, so that each is emitted once over a table.
#ifndef WINDLASS_LIB_CONVERSION_SCHEDTOEMITC_REPEATS_H
#define WINDLASS_LIB_CONVERSION_SCHEDTOEMITC_REPEATS_H

#include "windlass/Dialect/Sched/IR/Place.h"
#include "windlass/Target/Cpp/Label.h"

#include <map>
#include <string>
#include <vector>

namespace windlass {

/// Commands of one function that follow each other and belong to one instance of a repeat, or to none.
struct Instance {
  std::vector<mlir::Operation *> commands;
  bool isRepeated = false;
  /// The instance, as "layers.3".
  cpp::Label label;
  /// Set for instances emitted through a block: its index and the row.
  int block = -1;
  int row = -1;
};

/// A block: the instances that have one text, and what differs between them.
struct RepeatedBlock {
  /// The first of the instances; all have the same commands, types and settings.
  std::vector<mlir::Operation *> commands;
  /// For each number of the commands (`numbersOf`, one command after the other): its column, or -1 where it is equal in
  /// all rows.
  std::vector<int> columns;
  /// The numbers of the columns, per row.
  std::vector<std::vector<int64_t>> rows;
  /// The first instance that uses each row.
  std::vector<cpp::Label> labels;
  /// Whether some of its buffers are in the slot of the micro-batch.
  bool hasSlot = false;
};

class Repeats {
public:
  /// Cuts the functions into instances and finds the blocks that have at least two distinct rows or uses.
  Repeats(llvm::ArrayRef<mlir::func::FuncOp> functions, const sched::ArenaTable &arenas);

  std::vector<Instance> &instancesOf(mlir::func::FuncOp function) { return instances[function.getName().str()]; }
  const std::vector<RepeatedBlock> &getBlocks() const { return blocks; }

private:
  std::map<std::string, std::vector<Instance>> instances;
  std::vector<RepeatedBlock> blocks;
};

/// Whether a buffer is in the slot of a micro-batch.
bool isInSlot(mlir::Value buffer, const sched::ArenaTable &arenas);

/// Returns the numbers of a command that may differ between instances: the offsets of its buffers in their arenas, in
/// bytes, or the number of its event.
llvm::SmallVector<int64_t> numbersOf(mlir::Operation *command);

} // namespace windlass

#endif
