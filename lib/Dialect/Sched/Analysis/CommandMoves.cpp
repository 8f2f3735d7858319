#include "windlass/Dialect/Sched/Analysis/CommandMoves.h"

using namespace mlir;
using namespace windlass;
using namespace windlass::sched;

MemRefType sched::typeOf(Value buffer) { return cast<MemRefType>(buffer.getType()); }

std::optional<int64_t> sched::getStorage(Value buffer) {
  auto storage = buffer.getDefiningOp()->getAttrOfType<IntegerAttr>(kStorageAttr);
  return storage ? std::optional<int64_t>(storage.getInt()) : std::nullopt;
}

bool sched::isCommand(Operation *op) { return isa<LaunchOp, LaunchMapOp, LaunchCollectiveOp>(op); }

std::pair<ValueRange, ValueRange> sched::getInsAndOuts(Operation *command) {
  if (auto launch = dyn_cast<LaunchOp>(command))
    return {launch.getIns(), launch.getOuts()};
  if (auto map = dyn_cast<LaunchMapOp>(command))
    return {map.getIns(), map.getOuts()};
  auto collective = cast<LaunchCollectiveOp>(command);
  return {collective.getIns(), collective.getOuts()};
}

bool sched::canWriteWhileReading(KernelKind kernel, ValueRange ins, ValueRange outs, size_t terms) {
  KernelArity arity = {ins.size(), outs.size(), terms};
  for (auto [o, out] : llvm::enumerate(outs)) {
    for (auto [i, in] : llvm::enumerate(ins))
      if (!(isSame(in, out) && getRow(kernel).mayWriteOver(arity, i, o)) && overlap(in, out))
        return false;
    if (overlap(ValueRange(out), outs.take_front(o)))
      return false;
  }
  return true;
}

namespace {

/// What a command reads and writes.
class Accesses {
public:
  explicit Accesses(Operation *command) : Accesses(getInsAndOuts(command)) {}

  /// Whether the two commands must not run at the same time.
  bool conflict(const Accesses &other) const {
    return read.overlap(other.written) || written.overlap(other.written) || written.overlap(other.read);
  }

private:
  explicit Accesses(std::pair<ValueRange, ValueRange> insAndOuts)
      : read(insAndOuts.first), written(insAndOuts.second) {}

  Buffers read, written;
};

} // namespace

bool sched::canMove(Operation *earlier, Operation *later, ArrayRef<Operation *> others) {
  if (earlier->hasAttr(kInLastAttr) != later->hasAttr(kInLastAttr))
    return false;
  const Accesses moved(earlier);
  for (Operation *op = earlier->getNextNode(); op != later; op = op->getNextNode()) {
    if (isa<BufferOp, WaitOp>(op) || llvm::is_contained(others, op))
      continue;
    if (isa<RecordOp>(op))
      return false; // another stream may wait for it
    if (moved.conflict(Accesses(op)))
      return false;
  }
  return true;
}

bool sched::canMoveUp(LaunchMapOp later, Operation *earlier, ArrayRef<Operation *> others) {
  if (earlier->hasAttr(kInLastAttr) != later->hasAttr(kInLastAttr))
    return false;
  const Accesses moved(later);
  for (Operation *op = earlier->getNextNode(); op != later; op = op->getNextNode()) {
    // Whoever waits for a record waits for more then.
    if (isa<BufferOp, RecordOp>(op) || llvm::is_contained(others, op))
      continue;
    if (auto wait = dyn_cast<WaitOp>(op)) {
      if (wait.getStreamAttr() == later.getStreamAttr())
        return false; // what it waits for may touch the same bytes
      continue;
    }
    if (moved.conflict(Accesses(op)))
      return false;
  }
  return true;
}

/// Moves `op` to `place` of its block. Removing and inserting keep the order numbers of all other operations; splicing,
/// as `Operation::moveBefore` does, makes those of the whole block invalid.
static void moveTo(Operation *op, Block::iterator place) {
  if (place == op->getIterator())
    return;
  Block *block = op->getBlock();
  op->remove();
  block->getOperations().insert(place, op);
}

void sched::moveBefore(Operation *op, Operation *place) { moveTo(op, place->getIterator()); }

void sched::moveBehind(Operation *op, Operation *place) { moveTo(op, std::next(place->getIterator())); }

void sched::copyRepeat(Operation *from, Operation *to) {
  if (Attribute repeat = from->getAttr(plan::kRepeatAttr))
    to->setAttr(plan::kRepeatAttr, repeat);
  else
    to->removeAttr(plan::kRepeatAttr);
}

void sched::dropUnusedFunctions(ProgramOp program, const llvm::StringSet<> &names) {
  llvm::StringSet<> applied;
  program.walk([&](LaunchMapOp map) { applied.insert(map.getFunction()); });
  for (auto function : llvm::make_early_inc_range(program.getOps<func::FuncOp>()))
    if (names.contains(function.getName()) && !applied.contains(function.getName()))
      function.erase();
}
