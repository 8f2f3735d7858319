#include "windlass/Dialect/Sched/Analysis/CommandUses.h"

#include "windlass/Dialect/Sched/Analysis/CommandMoves.h"

using namespace mlir;
using namespace windlass;
using namespace windlass::sched;

static constexpr int64_t kUnknownStorage = -1;

static int64_t keyOf(Value buffer) { return getStorage(buffer).value_or(kUnknownStorage); }

CommandUses::CommandUses(ProgramOp program) {
  program.walk([&](Operation *op) {
    if (isCommand(op))
      add(op);
  });
}

CommandUses::CommandUses(Block &block) {
  for (Operation &op : block)
    if (isCommand(&op))
      add(&op);
}

ArrayRef<Operation *> CommandUses::of(Value buffer) const {
  auto found = users.find(keyOf(buffer));
  return found == users.end() ? ArrayRef<Operation *>() : ArrayRef<Operation *>(found->second);
}

SmallVector<Operation *> CommandUses::of(Value buffer, Block *block) const {
  return llvm::filter_to_vector(of(buffer), [&](Operation *op) { return op->getBlock() == block; });
}

void CommandUses::add(Operation *command) {
  for (Value buffer : command->getOperands()) {
    SmallVector<Operation *> &list = users[keyOf(buffer)];
    auto *place = list.end();
    bool isNew = true;
    for (auto *it = list.end(); it != list.begin();) {
      --it;
      if ((*it)->getBlock() != command->getBlock())
        continue;
      isNew = *it != command;
      if (!command->isBeforeInBlock(*it))
        break;
      place = it;
    }
    if (isNew)
      list.insert(place, command);
  }
}

void CommandUses::remove(Operation *command) {
  for (Value buffer : command->getOperands())
    llvm::erase(users[keyOf(buffer)], command);
}
