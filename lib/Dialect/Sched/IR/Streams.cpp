#include "windlass/Dialect/Sched/IR/Streams.h"

#include "windlass/Dialect/Sched/IR/Programs.h"

#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace windlass;
using namespace windlass::sched;

std::string windlass::sched::describePositions(CommunicatorOp communicator) {
  std::optional<ArrayRef<int64_t>> positions = communicator.getPositions();
  if (!positions)
    return "";
  auto module = communicator->getParentOfType<ModuleOp>();
  if (positions->size() == getPrograms(module).size())
    return "positions";
  return "positions " +
         llvm::join(llvm::map_range(*positions, [](int64_t position) { return std::to_string(position); }), ", ");
}

std::string windlass::sched::getMessagesName(int64_t peer) { return "messages with position " + std::to_string(peer); }

StreamMemories windlass::sched::getMemories(StreamKind kind) {
  using plan::MemoryKind;
  switch (kind) {
  case StreamKind::compute:
  case StreamKind::communicator:
    return {MemoryKind::device, MemoryKind::device};
  case StreamKind::h2d:
    return {MemoryKind::host, MemoryKind::device};
  case StreamKind::d2h:
    return {MemoryKind::device, MemoryKind::host};
  case StreamKind::host:
    return {MemoryKind::host, MemoryKind::host};
  case StreamKind::disk_read:
    return {MemoryKind::disk, MemoryKind::host};
  case StreamKind::disk_write:
    return {MemoryKind::host, MemoryKind::disk};
  }
  llvm_unreachable("unknown kind of stream");
}

std::optional<StreamKind> windlass::sched::findMovingKind(plan::MemoryKind from, plan::MemoryKind to) {
  for (StreamKind kind : {StreamKind::h2d, StreamKind::d2h, StreamKind::disk_read, StreamKind::disk_write})
    if (StreamMemories memories = getMemories(kind); memories.read == from && memories.written == to)
      return kind;
  return std::nullopt;
}

StreamTable::StreamTable(ProgramOp program) {
  for (StreamOp stream : program.getOps<StreamOp>()) {
    numbers[stream.getSymNameAttr()] = static_cast<int64_t>(streams.size());
    streams.push_back(stream);
    shownNames.push_back(stream.getSymName().str());
  }
  for (CommunicatorOp communicator : program.getOps<CommunicatorOp>()) {
    int64_t number = getNumber(communicator);
    numbers[communicator.getSymNameAttr()] = number;
    SmallVector<StringRef> parts(communicator.getAxes().getAsValueRange<StringAttr>());
    std::string positions = describePositions(communicator);
    if (!positions.empty())
      parts.push_back(positions);
    shownNames[number] = "over " + llvm::join(parts, " x ");
  }
}

int64_t StreamTable::getNumber(Operation *command) const {
  if (auto collective = dyn_cast<LaunchCollectiveOp>(command))
    return numbers.at(collective.getCommunicatorAttr().getAttr());
  return numbers.at(command->getAttrOfType<FlatSymbolRefAttr>("stream").getAttr());
}

std::optional<int64_t> StreamTable::getCompute() const {
  for (int64_t number = 0; number < size(); ++number)
    if (getKind(number) == StreamKind::compute)
      return number;
  return std::nullopt;
}
