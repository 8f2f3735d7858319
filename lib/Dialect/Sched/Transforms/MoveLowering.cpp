// Copies between the host's and the device's memory, and what the host runs, as commands on streams of their own.
#include "FunctionLowering.h"

#include "windlass/Dialect/Sched/Analysis/Owner.h"
#include "windlass/Dialect/Sched/IR/StepFunctions.h"
#include "windlass/Dialect/Sched/IR/Streams.h"
#include "windlass/Dialect/Train/IR/Optimizers.h"

using namespace mlir;
using namespace windlass;
using namespace windlass::sched;

/// The stream of states that the device has updated.
constexpr char kStatesToHost[] = "d2h_states";

/// Whether a copy brings an optimizer's state to the device for its update, or takes it back.
static bool isOfUpdatedState(MoveOp op) {
  if (op.getMemory() == plan::MemoryKind::device)
    return llvm::any_of(op.getResult().getUsers(), train::isOptimizerStep);
  Operation *maker = op.getInput().getDefiningOp();
  return maker && train::isOptimizerStep(maker);
}

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
      last = std::max(last, lastComputed[program.storages[view.storage].memory]);
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

void FunctionLowering::fillAtStart(Operation *op, const View &out) {
  std::vector<Command> first;
  Command fill = makeFill(op, out, 0);
  if (memory == plan::MemoryKind::host) {
    fill.stream = program.getStream(StreamKind::host);
    // The host waits for what functions before have done there.
    for (auto [kind, stream] : {std::pair(Command::Kind::Record, kComputeStream), {Command::Kind::Wait, fill.stream}}) {
      first.emplace_back(kind, op->getLoc());
      first.back().stream = stream;
      first.back().event = program.events;
    }
    ++program.events;
  }
  first.push_back(std::move(fill));
  commands.insert(commands.begin(), std::make_move_iterator(first.begin()), std::make_move_iterator(first.end()));
}

void FunctionLowering::releaseOnHost(unsigned storage, Operation *op) {
  auto it = pending.find(storage);
  if (it == pending.end())
    return;
  SmallVector<unsigned> writers = {program.getStream(StreamKind::d2h), program.getStream(StreamKind::host)};
  if (returnsStates)
    writers.push_back(program.getStream(StreamKind::d2h, kStatesToHost));
  if (program.usesDisk())
    writers.push_back(program.getStream(StreamKind::disk_read));
  for (unsigned stream : writers)
    if (stream != it->second.stream)
      pushEvent(Command::Kind::Wait, stream, it->second.event, op);
  commands.back().keepsAlive.push_back(storage);
  pending.erase(storage);
}

void FunctionLowering::measureMoves(Block &body) {
  int64_t largest = 0;
  llvm::DenseMap<Operation *, int64_t> written, updated;
  for (auto move : body.getOps<MoveOp>()) {
    int64_t bytes = getTensorBytes(cast<RankedTensorType>(move.getResult().getType()));
    largest = std::max(largest, bytes);
    Operation *maker = move.getInput().getDefiningOp();
    if (move.getMemory() == plan::MemoryKind::disk)
      written[maker] += bytes;
    else if (move.getMemory() == plan::MemoryKind::host && isOfUpdatedState(move))
      updated[maker] += bytes;
  }
  returnsStates = !updated.empty();
  arriving.largest = leaving.largest = departing.largest = largest;
  for (auto [op, bytes] : written)
    leaving.largest = std::max(leaving.largest, bytes);
  for (auto [op, bytes] : updated)
    departing.largest = std::max(departing.largest, bytes);
}

void FunctionLowering::makeRoom(Transit &transit, int64_t bytes,
                                llvm::function_ref<void(const Transit::Tensor &)> release) {
  while (transit.first < transit.tensors.size() && transit.bytes + bytes > 2 * transit.largest) {
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

Value FunctionLowering::findMovedHere(Operation *op, unsigned result) {
  const KernelRow *row = findRow(op);
  std::optional<size_t> replaced = row ? row->getReplaced(getArity(op), result) : std::nullopt;
  Value operand = replaced ? op->getOperand(*replaced) : Value();
  return operand && operand.hasOneUse() && operand.getDefiningOp<MoveOp>() ? operand : Value();
}

unsigned FunctionLowering::getStreamOfMove(MoveOp op, StreamKind kind) {
  // Gradients and weights of what the host updates do not wait behind states that the device updates.
  if (isOfUpdatedState(op) && kind == StreamKind::h2d)
    return program.getStream(kind, "h2d_states");
  if (isOfUpdatedState(op) && kind == StreamKind::d2h)
    return program.getStream(kind, kStatesToHost);
  // What an update beside the backward pass brings back waits for the host. What the passes fetch does not wait behind
  // it.
  if (kind == StreamKind::h2d && hasRole(function, StepRole::reduce))
    return program.getStream(kind, "h2d_updates");
  return program.getStream(kind);
}

LogicalResult FunctionLowering::lowerMove(MoveOp op) {
  View input = makeDense(op, views.lookup(op.getInput()));
  std::optional<StreamKind> kind = findMovingKind(program.storages[input.storage].memory, op.getMemory());
  if (!kind)
    return op.emitOpError("moves a value between memories that no stream connects: run sched-verify-async first");
  memory = op.getMemory();
  bool isFromDevice = kind == StreamKind::d2h;
  Command command(Command::Kind::Launch, op.getLoc());
  command.kernel = KernelKind::copy;
  command.stream = getStreamOfMove(op, *kind);
  command.repeat = op->getAttr(plan::kRepeatAttr);
  command.id = op->getAttr(train::kIdAttr);
  command.owner = getOwner(op, program.getSymbols());
  command.ins.push_back(input);
  int64_t bytes = getTensorBytes(cast<RankedTensorType>(op.getResult().getType()));
  // A number stays until the end: many steps read it.
  bool isNumber = input.getElements() == 1;
  if (isFromDevice && !isNumber)
    makeRoom(arriving, bytes, [&](const Transit::Tensor &oldest) { releaseOnHost(oldest.storage, op); });
  makeOutputs(op, /*canAccumulate=*/false, command);
  View wanted = command.outs.front();
  if (!wanted.isDense())
    command.outs.front() = allocate(cast<RankedTensorType>(op.getResult().getType()));
  View moved = command.outs.front();
  auto maker = pending.find(input.storage);
  std::optional<int64_t> made = maker == pending.end() ? std::nullopt : std::optional(maker->second.event);
  pushBeside(std::move(command), op);
  if (isFromDevice && !isNumber && program.storages[moved.storage].isTransient)
    add(arriving, moved.storage);
  if (!isNumber && program.storages[input.storage].isTransient) {
    // What follows on the compute stream, or on the host, may have the place of what was copied before, and of what a
    // collective has made that from.
    Transit &source = isFromDevice ? departing : leaving;
    makeRoom(source, bytes, [&](const Transit::Tensor &oldest) {
      if (!isFromDevice)
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
