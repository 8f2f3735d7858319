// Copies between the host's and the device's memory, and what the host runs, as commands on streams of their own.
#include "FunctionLowering.h"

#include "windlass/Dialect/Sched/Analysis/Owner.h"

using namespace mlir;
using namespace windlass;
using namespace windlass::sched;

void FunctionLowering::pushEvent(Command::Kind kind, unsigned stream, int64_t event, Operation *op) {
  Command command(kind, op->getLoc());
  command.stream = stream;
  command.event = event;
  command.repeat = op->getAttr(plan::kRepeatAttr);
  commands.push_back(std::move(command));
}

void FunctionLowering::waitForCompute(const Command &command, Operation *op) {
  size_t last = 0;
  // What the host's kernels read has been copied there by this function, and that waited for the device, or by one
  // before, for which the device has waited.
  bool isOfHost = program.streams[command.stream].kind == StreamKind::host, hasWaited = isOfHost && hasHostBegun;
  hasHostBegun |= isOfHost;
  if (!hasWaited)
    for (const View &view : llvm::concat<const View>(command.ins, command.outs))
      last = std::max(last, touched.lookup(view.storage));
  // Packing may give a new value the place of one that the compute stream has used, or waited for, until now.
  for (const View &view : command.outs)
    if (program.storages[view.storage].isTransient)
      last = std::max(last, lastComputed);
  if (hasWaited && last == 0)
    return;
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

void FunctionLowering::releaseOnHost(unsigned storage, Operation *op) {
  auto it = pending.find(storage);
  if (it == pending.end())
    return;
  for (StreamKind kind : {StreamKind::d2h, StreamKind::host})
    if (unsigned stream = program.getStream(kind); stream != it->second.stream)
      pushEvent(Command::Kind::Wait, stream, it->second.event, op);
  commands.back().keepsAlive.push_back(storage);
  pending.erase(storage);
}

void FunctionLowering::makeRoom(Transit &transit, int64_t bytes,
                                llvm::function_ref<void(const Transit::Tensor &)> release) {
  while (transit.first < transit.tensors.size() && transit.bytes + bytes > 2 * largestMove) {
    const Transit::Tensor &oldest = transit.tensors[transit.first++];
    transit.bytes -= program.storages[oldest.storage].bytes;
    release(oldest);
  }
}

void FunctionLowering::add(Transit &transit, unsigned storage, std::optional<int64_t> made) {
  transit.tensors.push_back({storage, made});
  transit.bytes += program.storages[storage].bytes;
}

void FunctionLowering::waitIfPending(int64_t event, Operation *op) {
  if (llvm::any_of(pending, [&](const auto &entry) { return entry.second.event == event; }))
    pushWait(event, op->getLoc(), op->getAttr(plan::kRepeatAttr));
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
  command.owner = getOwner(op, program.getSymbols());
  command.ins.push_back(input);
  int64_t bytes = getTensorBytes(cast<RankedTensorType>(op.getResult().getType()));
  // A number stays until the end: many steps read it.
  bool isNumber = input.getElements() == 1;
  if (isToHost && !isNumber)
    makeRoom(arriving, bytes, [&](const Transit::Tensor &oldest) { releaseOnHost(oldest.storage, op); });
  makeOutputs(op, /*canAccumulate=*/false, command);
  View wanted = command.outs.front();
  if (!wanted.isDense())
    command.outs.front() = allocate(cast<RankedTensorType>(op.getResult().getType()));
  View moved = command.outs.front();
  auto maker = pending.find(input.storage);
  std::optional<int64_t> made = maker == pending.end() ? std::nullopt : std::optional(maker->second.event);
  pushBeside(std::move(command), op);
  if (isToHost && !isNumber && program.storages[moved.storage].isTransient)
    add(arriving, moved.storage);
  if (!isNumber && program.storages[input.storage].isTransient) {
    // What follows on the compute stream, or on the host, may have the place of what was copied before, and of what a
    // collective has made that from.
    Transit &source = isToHost ? departing : leaving;
    makeRoom(source, bytes, [&](const Transit::Tensor &oldest) {
      if (!isToHost)
        return releaseOnHost(oldest.storage, op);
      if (oldest.made)
        waitIfPending(*oldest.made, op);
      if (auto it = pending.find(oldest.storage); it != pending.end())
        pushWait(it->second.event, op->getLoc(), op->getAttr(plan::kRepeatAttr));
    });
    add(source, input.storage, made);
  }
  if (!wanted.isDense())
    pushCopy(op, wanted, moved);
  finish(op);
  return success();
}
