// Copies between the host's and the device's memory, and what the host runs, as commands on streams of their own.
#include "FunctionLowering.h"

#include "windlass/Dialect/Sched/Analysis/Owner.h"

using namespace mlir;
using namespace windlass;
using namespace windlass::sched;

/// The tensors of each direction that may be on the host at once: one is copied while another is used.
static constexpr size_t kMostOnHost = 2;

void FunctionLowering::pushEvent(Command::Kind kind, unsigned stream, int64_t event, Operation *op) {
  Command command(kind, op->getLoc());
  command.stream = stream;
  command.event = event;
  command.repeat = op->getAttr(plan::kRepeatAttr);
  commands.push_back(std::move(command));
}

void FunctionLowering::waitForCompute(const Command &command, Operation *op) {
  size_t last = 0;
  for (const View &view : llvm::concat<const View>(command.ins, command.outs))
    last = std::max(last, touched.lookup(view.storage));
  // Packing may give a new value the place of one that the compute stream has used, or waited for, until now.
  for (const View &view : command.outs)
    if (program.storages[view.storage].isTransient && program.storages[view.storage].memory == plan::MemoryKind::device)
      last = std::max(last, lastComputed);
  if (!computed || computed->second < last) {
    int64_t event = program.events++;
    pushEvent(Command::Kind::Record, kComputeStream, event, op);
    computed = {event, commands.size()};
    waited.clear();
  }
  if (waited.insert(command.stream).second)
    pushEvent(Command::Kind::Wait, command.stream, computed->first, op);
}

void FunctionLowering::pushBeside(Command command, Operation *op) {
  // What the host's kernels read has been copied there, and that waited for the device.
  if (program.streams[command.stream].kind != StreamKind::host)
    waitForCompute(command, op);
  llvm::SmallDenseSet<int64_t> events;
  for (const View &view : llvm::concat<const View>(command.ins, command.outs))
    if (auto it = pending.find(view.storage);
        it != pending.end() && it->second.stream != command.stream && events.insert(it->second.event).second)
      pushEvent(Command::Kind::Wait, command.stream, it->second.event, op);
  int64_t done = program.events++;
  for (const View &view : llvm::concat<const View>(command.ins, command.outs))
    pending[view.storage] = {done, command.stream};
  unsigned stream = command.stream;
  commands.push_back(std::move(command));
  pushEvent(Command::Kind::Record, stream, done, op);
}

void FunctionLowering::limit(ArrayRef<unsigned> tensors, Operation *op) {
  if (tensors.size() < kMostOnHost)
    return;
  unsigned oldest = tensors[tensors.size() - kMostOnHost];
  auto it = pending.find(oldest);
  if (it == pending.end())
    return;
  for (StreamKind kind : {StreamKind::d2h, StreamKind::host})
    if (unsigned stream = program.getStream(kind); stream != it->second.stream)
      pushEvent(Command::Kind::Wait, stream, it->second.event, op);
  commands.back().keepsAlive.push_back(oldest);
  pending.erase(oldest);
}

LogicalResult FunctionLowering::lowerMove(MoveOp op) {
  View input = makeDense(op, views.lookup(op.getInput()));
  memory = op.getMemory();
  bool isToHost = memory == plan::MemoryKind::host;
  Command command(Command::Kind::Launch, op.getLoc());
  command.kernel = KernelKind::copy;
  command.stream = program.getStream(isToHost ? StreamKind::d2h : StreamKind::h2d);
  command.repeat = op->getAttr(plan::kRepeatAttr);
  command.id = op->getAttr(train::kIdAttr);
  command.owner = getOwner(op);
  command.ins.push_back(input);
  if (isToHost)
    limit(arriving, op);
  makeOutputs(op, /*canAccumulate=*/false, command);
  View wanted = command.outs.front();
  if (!wanted.isDense())
    command.outs.front() = allocate(cast<RankedTensorType>(op.getResult().getType()));
  // A number stays until the end: many steps read it.
  if (isToHost && input.getElements() > 1)
    arriving.push_back(command.outs.front().storage);
  View moved = command.outs.front();
  pushBeside(std::move(command), op);
  if (!isToHost && program.storages[input.storage].isTransient) {
    limit(leaving, op);
    leaving.push_back(input.storage);
  }
  if (!wanted.isDense())
    pushCopy(op, wanted, moved);
  return success();
}
