#include "CommandMoves.h"

#include "windlass/Support/TensorBytes.h"

#include <limits>

using namespace mlir;
using namespace windlass;
using namespace windlass::sched;

MemRefType sched::typeOf(Value buffer) { return cast<MemRefType>(buffer.getType()); }

int64_t sched::offsetOf(Value buffer) { return buffer.getDefiningOp<BufferOp>().getOffset(); }

std::optional<int64_t> sched::getStorage(Value buffer) {
  auto storage = buffer.getDefiningOp()->getAttrOfType<IntegerAttr>(kStorageAttr);
  return storage ? std::optional<int64_t>(storage.getInt()) : std::nullopt;
}

bool sched::isSame(Value a, Value b) { return a.getType() == b.getType() && offsetOf(a) == offsetOf(b); }

ByteRange sched::getBounds(Value buffer) {
  SmallVector<int64_t> strides;
  int64_t offset, last = 0;
  MemRefType type = typeOf(buffer);
  if (failed(type.getStridesAndOffset(strides, offset)))
    return {0, std::numeric_limits<int64_t>::max()};
  for (auto [size, stride] : llvm::zip_equal(type.getShape(), strides)) {
    if (size == 0)
      return {offsetOf(buffer), offsetOf(buffer)};
    last += (size - 1) * stride;
  }
  return {offsetOf(buffer), offsetOf(buffer) + (last + 1) * getElementBytes(type.getElementType())};
}

bool sched::overlap(Value a, Value b) {
  auto rangesOf = [](Value buffer) {
    SmallVector<int64_t> strides;
    int64_t offset;
    bool isExact = true;
    MemRefType type = typeOf(buffer);
    if (failed(type.getStridesAndOffset(strides, offset)))
      return std::vector<ByteRange>{{0, std::numeric_limits<int64_t>::max()}};
    return schedule::getByteRanges(offsetOf(buffer), getElementBytes(type.getElementType()),
                                   {type.getShape().begin(), type.getShape().end()}, {strides.begin(), strides.end()},
                                   isExact);
  };
  return schedule::overlap(rangesOf(a), rangesOf(b));
}

bool sched::overlap(ValueRange a, ValueRange b) {
  return llvm::any_of(a, [&](Value x) { return llvm::any_of(b, [&](Value y) { return overlap(x, y); }); });
}

bool sched::isCommand(Operation *op) { return isa<LaunchOp, LaunchMapOp, LaunchCollectiveOp>(op); }

std::pair<ValueRange, ValueRange> sched::getInsAndOuts(Operation *command) {
  if (auto launch = dyn_cast<LaunchOp>(command))
    return {launch.getIns(), launch.getOuts()};
  if (auto map = dyn_cast<LaunchMapOp>(command))
    return {map.getIns(), map.getOuts()};
  auto collective = cast<LaunchCollectiveOp>(command);
  return {collective->getOperands().take_front(1), collective->getOperands().drop_front(1)};
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

bool sched::canMove(Operation *earlier, Operation *later, ArrayRef<Operation *> others) {
  auto [read, written] = getInsAndOuts(earlier);
  for (Operation *op = earlier->getNextNode(); op != later; op = op->getNextNode()) {
    if (isa<BufferOp, WaitOp>(op) || llvm::is_contained(others, op))
      continue;
    if (isa<RecordOp>(op))
      return false; // another stream may wait for it
    auto [ins, outs] = getInsAndOuts(op);
    if (overlap(ins, written) || overlap(outs, written) || overlap(outs, read))
      return false;
  }
  return true;
}

void sched::copyRepeat(Operation *from, Operation *to) {
  if (Attribute repeat = from->getAttr(plan::kRepeatAttr))
    to->setAttr(plan::kRepeatAttr, repeat);
  else
    to->removeAttr(plan::kRepeatAttr);
}

void sched::dropUnusedFunctions(ModuleOp module, const llvm::StringSet<> &names) {
  llvm::StringSet<> applied;
  module.walk([&](LaunchMapOp map) { applied.insert(map.getFunction()); });
  for (auto function : llvm::make_early_inc_range(module.getOps<func::FuncOp>()))
    if (names.contains(function.getName()) && !applied.contains(function.getName()))
      function.erase();
}
