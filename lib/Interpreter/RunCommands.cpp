// Level L5: commands on buffers of byte arenas, one set of arenas per rank. Commands run in the order of the text,
// which is one that the streams may choose; ScheduleChecker shows that every other one gives the same.
#include "Collectives.h"
#include "LaunchKernels.h"
#include "Machine.h"
#include "Runners.h"
#include "ScalarFunctions.h"
#include "SpmdEvaluator.h"
#include "windlass/Dialect/Sched/IR/Place.h"
#include "windlass/Dialect/Sched/IR/Programs.h"
#include "windlass/Dialect/Sched/IR/Schedules.h"
#include "windlass/Dialect/Sched/IR/Streams.h"
#include "windlass/Interpreter/ScheduleChecker.h"

#include <cstring>

using namespace mlir;
using namespace windlass;
using namespace windlass::interpreter;

namespace {

/// The most bytes of all arenas of all ranks together: the interpreter is for small models.
constexpr int64_t kArenaLimit = int64_t(16) << 30;

/// A window and the type of its elements.
struct Buffer {
  Window window;
  /// The bytes from a slot to the next; 0 for what is in no slot.
  int64_t slotBytes = 0;
  /// Whether the slot is one for what a backward hands to a weight gradient.
  bool isHanded = false;
  ElementKind kind;
  RankedTensorType type;
};

class BufferMachine : public Machine {
public:
  BufferMachine(sched::ProgramOp program, const RunOptions &options, Crossings &crossings)
      : program(program), mesh(program.getMesh()), precision(options.precision), rounds(options.rounds),
        streams(program), arenas(program), crossings(crossings) {}

  LogicalResult prepare();
  RankValues read(sched::ResourceOp resource, int64_t slot) override {
    RankValues parts;
    for (int64_t rank = 0; rank < mesh.getRanks(); ++rank)
      parts.push_back(load(inSlot(resourceBuffers.find(resource.getSymNameAttr())->second, slot), rank));
    return parts;
  }
  LogicalResult write(sched::ResourceOp resource, const RankValues &parts, int64_t slot) override;
  FailureOr<bool> run(func::FuncOp function, const FunctionCall &call) override;
  void waitForCompute() override {
    if (std::optional<int64_t> compute = streams.getCompute())
      checker->waitByHost(*compute);
  }
  LogicalResult finishStep(ArrayRef<sched::ResourceOp> outputs) override;

private:
  FailureOr<Buffer> makeBuffer(Operation *op, StringAttr arena, int64_t offset, ArrayRef<int64_t> sizes,
                               ArrayRef<int64_t> strides, Type element);
  /// Returns the buffer of a value in the slots of the function that runs.
  FailureOr<Buffer> bufferOf(Operation *user, Value value);
  FailureOr<SmallVector<Buffer>> buffersOf(Operation *user, ValueRange values);
  Tensor load(const Buffer &buffer, int64_t rank);
  void store(const Buffer &buffer, Tensor value, int64_t rank);
  static Buffer inSlot(Buffer buffer, int64_t slot) {
    buffer.window.offset += slot * buffer.slotBytes;
    return buffer;
  }
  int64_t slotOf(const Buffer &buffer) const { return buffer.isHanded ? call.handedSlot : call.slot; }
  int64_t findScale();
  /// Returns the bytes between elements.
  int64_t pitch(const Buffer &buffer) const { return buffer.window.elementBytes * scale; }

  LogicalResult report(Operation *op, const std::optional<ScheduleChecker::Finding> &finding);
  LogicalResult check(Operation *op, ArrayRef<Buffer> ins, ArrayRef<Buffer> outs, bool accumulates);
  LogicalResult runLaunch(sched::LaunchOp op, bool adds);
  LogicalResult runMap(sched::LaunchMapOp op, bool adds);
  LogicalResult runCollective(sched::LaunchCollectiveOp op);
  /// Exchanges rows of tokens among the members of one group. What no member reads is 0.
  void exchangeRows(sched::LaunchCollectiveOp op, ArrayRef<Buffer> ins, const Buffer &out, ArrayRef<int64_t> members);
  /// Moves one pair of the buffers of a collective among the members of one group.
  LogicalResult exchange(sched::LaunchCollectiveOp op, const Buffer &in, const Buffer &out, ArrayRef<int64_t> members);
  /// Combines over positions; false where another one has not come to it.
  FailureOr<bool> runCrossing(sched::LaunchCollectiveOp op, sched::CommunicatorOp communicator);
  LogicalResult storeResults(Operation *op, ArrayRef<Buffer> outs, ArrayRef<Tensor> results, bool accumulates,
                             int64_t rank);

  sched::ProgramOp program;
  plan::MeshAttr mesh;
  Precision precision;
  bool rounds;
  sched::StreamTable streams;
  /// How many times as wide as planned all of memory is: floats are held in f32 or f64, whatever their type.
  int64_t scale = 1;
  sched::ArenaTable arenas;
  SmallVector<int64_t> arenaBytes;
  /// [rank][arena]
  std::vector<std::vector<std::vector<std::byte>>> memory;
  DenseMap<StringAttr, Buffer> resourceBuffers;
  /// In slot 0.
  DenseMap<Value, Buffer> buffers;
  /// The function that runs.
  FunctionCall call;
  Crossings &crossings;
  /// The command that waits for other positions.
  Operation *waiting = nullptr;
  std::optional<ScheduleChecker> checker;
};

} // namespace

int64_t BufferMachine::findScale() {
  unsigned least = 32;
  auto see = [&](Type type) {
    if (Type element = getElementTypeOrSelf(type); llvm::isa<FloatType>(element))
      least = std::min(least, element.getIntOrFloatBitWidth());
  };
  program.walk([&](Operation *op) {
    if (auto resource = llvm::dyn_cast<sched::ResourceOp>(op))
      see(resource.getTensorType());
    for (Type type : op->getResultTypes())
      see(type);
  });
  return (precision == Precision::f64 ? 64 : 32) / std::max(least, 8u);
}

LogicalResult BufferMachine::prepare() {
  scale = findScale();
  int64_t total = 0;
  for (auto arena : program.getOps<sched::ArenaOp>()) {
    int64_t bytes = arena.getBytes();
    if (bytes < 0 || bytes > kArenaLimit || (total += bytes * scale * mesh.getRanks()) > kArenaLimit)
      return arena.emitError("cannot be executed: the arenas of ")
             << mesh.getRanks() << " ranks exceed the " << kArenaLimit << " bytes that the interpreter takes";
    arenaBytes.push_back(bytes);
  }
  for (auto slots : program.getOps<sched::SlotsOp>())
    if (std::optional<sched::ArenaTable::Area> area = arenas.find(slots.getSymNameAttr());
        !area || slots.getEnd() > arenaBytes[area->arena])
      return slots.emitError("cannot be executed: is not inside of its arena");
  // What nobody wrote is NaN, so that it cannot hide in a sum.
  memory.resize(mesh.getRanks());
  for (auto &arenas : memory)
    for (int64_t bytes : arenaBytes)
      arenas.emplace_back(bytes * scale, std::byte(0xFF));
  checker.emplace(arenaBytes);

  for (auto resource : program.getOps<sched::ResourceOp>()) {
    if (!resource.getArenaAttr() || !resource.getOffset())
      return resource.emitError("cannot be executed: has no place in an arena");
    RankedTensorType type = resource.getTensorType();
    FailureOr<Buffer> buffer = makeBuffer(resource, resource.getArenaAttr().getAttr(), *resource.getOffset(),
                                          type.getShape(), denseStrides(type.getShape(), 1), type.getElementType());
    if (failed(buffer))
      return failure();
    resourceBuffers.try_emplace(resource.getSymNameAttr(), std::move(*buffer));
  }
  return success();
}

FailureOr<Buffer> BufferMachine::makeBuffer(Operation *op, StringAttr arena, int64_t offset, ArrayRef<int64_t> sizes,
                                            ArrayRef<int64_t> strides, Type element) {
  std::optional<sched::ArenaTable::Area> area = arenas.find(arena);
  if (!area)
    return op->emitError("cannot be executed: there is no sched.arena ") << arena;
  std::optional<ElementKind> kind = kindOf(element, precision);
  if (!kind)
    return op->emitError("cannot be executed: the interpreter computes with f32, f64, bf16, f16, i64, i32 and i1 only");
  Buffer buffer;
  buffer.kind = *kind;
  buffer.type = RankedTensorType::get(sizes, element);
  buffer.window.arena = area->arena;
  buffer.window.offset = area->offset + offset;
  buffer.slotBytes = area->slots ? area->slots.getBytes() : 0;
  buffer.isHanded = area->slots && area->slots.getHanded();
  buffer.window.elementBytes = (element.getIntOrFloatBitWidth() + 7) / 8;
  buffer.window.sizes.assign(sizes.begin(), sizes.end());
  buffer.window.strides.assign(strides.begin(), strides.end());
  // Each bound is checked before it can overflow the next product.
  int64_t bytes = area->slots ? buffer.slotBytes : arenaBytes[area->arena], last = offset + buffer.window.elementBytes;
  bool isInside = offset >= 0 && offset <= bytes;
  for (auto [size, stride] : llvm::zip_equal(sizes, strides)) {
    if (size == 0) {
      last = offset;
      break;
    }
    isInside = isInside && size > 0 && stride >= 0 && stride <= bytes && (stride == 0 || size - 1 <= bytes / stride);
    if (isInside)
      last += (size - 1) * stride * buffer.window.elementBytes;
  }
  if (!isInside || last > bytes)
    return op->emitError("cannot be executed: lies outside the ") << bytes << " bytes of @" << arena.getValue();
  return buffer;
}

FailureOr<Buffer> BufferMachine::bufferOf(Operation *user, Value value) {
  if (auto found = buffers.find(value); found != buffers.end())
    return inSlot(found->second, slotOf(found->second));
  auto op = value.getDefiningOp<sched::BufferOp>();
  if (!op)
    return user->emitError("cannot be executed: an operand is no sched.buffer");
  auto type = llvm::cast<MemRefType>(value.getType());
  SmallVector<int64_t> strides;
  int64_t offset = 0;
  if (!type.hasStaticShape() || failed(type.getStridesAndOffset(strides, offset)) || offset != 0 ||
      llvm::any_of(strides, [](int64_t stride) { return ShapedType::isDynamic(stride); }))
    return op.emitError("cannot be executed: needs static sizes and strides");
  FailureOr<Buffer> buffer =
      makeBuffer(op, op.getArenaAttr().getAttr(), op.getOffset(), type.getShape(), strides, type.getElementType());
  if (failed(buffer))
    return failure();
  buffers.try_emplace(value, *buffer);
  return inSlot(*buffer, slotOf(*buffer));
}

FailureOr<SmallVector<Buffer>> BufferMachine::buffersOf(Operation *user, ValueRange values) {
  SmallVector<Buffer> result;
  for (Value value : values) {
    FailureOr<Buffer> buffer = bufferOf(user, value);
    if (failed(buffer))
      return failure();
    result.push_back(std::move(*buffer));
  }
  return result;
}

static SmallVector<int64_t, 4> scaled(ArrayRef<int64_t> strides, int64_t unit) {
  SmallVector<int64_t, 4> result;
  for (int64_t stride : strides)
    result.push_back(stride * unit);
  return result;
}

Tensor BufferMachine::load(const Buffer &buffer, int64_t rank) {
  const Window &window = buffer.window;
  Tensor result(buffer.kind, window.sizes);
  int64_t bytes = bytesOf(buffer.kind);
  copyElements(result.mutableData(), denseStrides(window.sizes, bytes),
               memory[rank][window.arena].data() + window.offset * scale, scaled(window.strides, pitch(buffer)),
               window.sizes, bytes);
  if (buffer.kind == ElementKind::boolean) // What nobody wrote is no bool.
    for (int64_t i = 0; i < result.getElements(); ++i)
      result.mutableData()[i] = std::byte(result.data()[i] != std::byte(0));
  return result;
}

void BufferMachine::store(const Buffer &buffer, Tensor value, int64_t rank) {
  roundAsStored(buffer.type.getElementType(), rounds, value);
  const Window &window = buffer.window;
  int64_t bytes = bytesOf(buffer.kind);
  copyElements(memory[rank][window.arena].data() + window.offset * scale, scaled(window.strides, pitch(buffer)),
               value.data(), denseStrides(window.sizes, bytes), window.sizes, bytes);
}

LogicalResult BufferMachine::report(Operation *op, const std::optional<ScheduleChecker::Finding> &finding) {
  if (!finding)
    return success();
  InFlightDiagnostic diagnostic = op->emitError(finding->text);
  if (finding->meetsHost)
    diagnostic << ": it is the host";
  else if (finding->other && finding->other != op)
    diagnostic.attachNote(finding->other->getLoc())
        << "this is the other one: no event orders '" << finding->other->getName() << "' and '" << op->getName() << "'";
  return failure();
}

LogicalResult BufferMachine::write(sched::ResourceOp resource, const RankValues &parts, int64_t slot) {
  Buffer buffer = inSlot(resourceBuffers.find(resource.getSymNameAttr())->second, slot);
  checker->beginHost();
  if (failed(report(resource, checker->write(buffer.window))))
    return failure();
  for (int64_t rank = 0; rank < mesh.getRanks(); ++rank)
    store(buffer, parts[rank], rank);
  return success();
}

LogicalResult BufferMachine::finishStep(ArrayRef<sched::ResourceOp> outputs) {
  checker->waitByHost();
  checker->beginHost();
  for (sched::ResourceOp output : outputs)
    if (failed(report(output, checker->read(resourceBuffers.find(output.getSymNameAttr())->second.window))))
      return failure();
  return success();
}

/// Returns whether a command that accumulates adds to that result.
static bool addsToResult(Operation *op, size_t out) {
  auto launch = llvm::dyn_cast<sched::LaunchOp>(op);
  return !launch || launch.getRow().addsTo(out);
}

/// Returns whether the command may write that result over that operand.
static bool mayWriteOver(Operation *op, size_t in, size_t out) {
  auto launch = llvm::dyn_cast<sched::LaunchOp>(op);
  return !launch || launch.mayWriteOver(in, out);
}

LogicalResult BufferMachine::check(Operation *op, ArrayRef<Buffer> ins, ArrayRef<Buffer> outs, bool accumulates) {
  checker->begin(op, streams.getNumber(op));
  for (const Buffer &in : ins)
    if (failed(report(op, checker->read(in.window))))
      return failure();
  auto adds = [&](size_t out) { return accumulates && addsToResult(op, out); };
  for (size_t o = 0; o < outs.size(); ++o)
    if (adds(o) && failed(report(op, checker->read(outs[o].window))))
      return failure();
  for (size_t o = 0; o < outs.size(); ++o) {
    const Window &window = outs[o].window;
    auto isReplaced = [&, o](auto entry) {
      return entry.value().window == window && mayWriteOver(op, entry.index(), o);
    };
    if (failed(report(op, checker->write(window, llvm::any_of(llvm::enumerate(ins), isReplaced) || adds(o)))))
      return failure();
  }
  return success();
}

LogicalResult BufferMachine::storeResults(Operation *op, ArrayRef<Buffer> outs, ArrayRef<Tensor> results,
                                          bool accumulates, int64_t rank) {
  for (auto [o, out, result] : llvm::enumerate(outs, results)) {
    if (result.getKind() != out.kind || result.getShape() != out.type.getShape())
      return op->emitError("cannot be executed: a result does not fit its buffer");
    store(out,
          accumulates && addsToResult(op, o) ? combineAll({load(out, rank), result}, train::ReductionKind::sum)
                                             : result,
          rank);
  }
  return success();
}

LogicalResult BufferMachine::runLaunch(sched::LaunchOp op, bool adds) {
  FailureOr<SmallVector<Buffer>> ins = buffersOf(op, op.getIns()), outs = buffersOf(op, op.getOuts());
  if (failed(ins) || failed(outs))
    return failure();
  bool accumulates = op.getAccumulate() || (op.getAccumulateAfterFirst() && adds);
  if (failed(check(op, *ins, *outs, accumulates)))
    return failure();
  SmallVector<RankedTensorType> types;
  SmallVector<ElementKind> kinds;
  for (const Buffer &out : *outs) {
    types.push_back(out.type);
    kinds.push_back(out.kind);
  }
  bool roundsToTf32 = rounds && train::getPrecision(program->getParentOfType<ModuleOp>()) == "tf32";
  for (int64_t rank = 0; rank < mesh.getRanks(); ++rank) {
    SmallVector<Tensor> inputs;
    for (const Buffer &in : *ins)
      inputs.push_back(load(in, rank));
    FailureOr<SmallVector<Tensor>> results =
        computeLaunch({op, mesh, rank, precision, rounds, roundsToTf32, inputs, types, kinds});
    if (failed(results) || failed(storeResults(op, *outs, *results, accumulates, rank)))
      return failure();
  }
  return success();
}

LogicalResult BufferMachine::runMap(sched::LaunchMapOp op, bool adds) {
  FailureOr<SmallVector<Buffer>> ins = buffersOf(op, op.getIns()), outs = buffersOf(op, op.getOuts());
  FailureOr<func::FuncOp> function =
      scalarFunctionOf(op, op.getFunctionAttr(), op.getIns().size(), op.getOuts().size());
  if (failed(ins) || failed(outs) || failed(function))
    return failure();
  ArrayRef<int64_t> space = outs->front().type.getShape();
  bool accumulates = op.getAccumulateAfterFirst() && adds;
  if (failed(check(op, *ins, *outs, accumulates)))
    return failure();
  for (int64_t rank = 0; rank < mesh.getRanks(); ++rank) {
    SmallVector<Tensor> inputs;
    for (const Buffer &in : *ins)
      inputs.push_back(load(in, rank));
    FailureOr<SmallVector<Tensor>> results = applyScalarFunction(*function, inputs, space, precision);
    if (failed(results) || failed(storeResults(op, *outs, *results, accumulates, rank)))
      return failure();
  }
  return success();
}

LogicalResult BufferMachine::runCollective(sched::LaunchCollectiveOp op) {
  auto communicator = SymbolTable::lookupNearestSymbolFrom<sched::CommunicatorOp>(op, op.getCommunicatorAttr());
  FailureOr<SmallVector<Buffer>> ins = buffersOf(op, op.getIns()), outs = buffersOf(op, op.getOuts());
  if (!communicator || failed(ins) || failed(outs))
    return failure();
  auto groups = communicatorsOver(mesh, communicator.getAxes());
  if (!groups)
    return op.emitError("cannot be executed: the mesh ")
           << mesh << " has not all of the axes " << communicator.getAxes();
  checker->begin(op, streams.getNumber(op));
  // A bucket is reduced with the gaps between its parts.
  for (const Buffer &in : *ins)
    if (failed(report(op, checker->read(in.window, /*mayBeUnwritten=*/true))))
      return failure();
  for (const Buffer &out : *outs)
    if (failed(report(op, checker->write(out.window, llvm::any_of(*ins, [&](const Buffer &in) {
                                           return in.window == out.window;
                                         })))))
      return failure();
  if (op.exchangesRows()) {
    for (const SmallVector<int64_t> &members : *groups)
      exchangeRows(op, *ins, outs->front(), members);
    return success();
  }
  for (const SmallVector<int64_t> &members : *groups)
    for (auto [in, out] : llvm::zip_equal(*ins, *outs))
      if (failed(exchange(op, in, out, members)))
        return failure();
  return success();
}

void BufferMachine::exchangeRows(sched::LaunchCollectiveOp op, ArrayRef<Buffer> ins, const Buffer &out,
                                 ArrayRef<int64_t> members) {
  SmallVector<Tensor> rows;
  for (int64_t rank : members)
    rows.push_back(load(ins[0], rank));
  Tensor choices = load(ins[1], members.front());
  auto experts = static_cast<int64_t>(*op.getExperts());
  SmallVector<Tensor> results = op.getKind() == sched::CollectiveKind::gather_rows
                                    ? gatherRows(rows, choices, experts)
                                    : scatterRows(rows, choices, experts);
  for (auto [rank, result] : llvm::zip_equal(members, results))
    store(out, result, rank);
}

LogicalResult BufferMachine::exchange(sched::LaunchCollectiveOp op, const Buffer &in, const Buffer &out,
                                      ArrayRef<int64_t> members) {
  int64_t count = members.size(), elements = in.type.getNumElements();
  bool scatters = op.getKind() == sched::CollectiveKind::reduce_scatter;
  int64_t expected = op.getKind() == sched::CollectiveKind::all_gather ? elements * count
                     : scatters                                        ? elements / count
                                                                       : elements;
  bool mustDivide = scatters || op.getKind() == sched::CollectiveKind::all_to_all;
  if (in.kind != out.kind || out.type.getNumElements() != expected || (mustDivide && elements % count))
    return op.emitError("cannot be executed: ")
           << count << " members cannot exchange " << in.type << " for " << out.type;
  SmallVector<Tensor> parts;
  for (int64_t rank : members)
    parts.push_back(load(in, rank).reshaped({elements}));
  SmallVector<Tensor> results;
  switch (op.getKind()) {
  case sched::CollectiveKind::all_reduce:
    results = allReduce(parts, op.getReduction());
    break;
  case sched::CollectiveKind::all_gather:
    results = allGather(parts, 0);
    break;
  case sched::CollectiveKind::reduce_scatter:
    results = reduceScatter(parts, 0, op.getReduction());
    break;
  case sched::CollectiveKind::all_to_all:
    results = allToAll(parts, 0, 0);
    break;
  case sched::CollectiveKind::permute:
    if (op.getDestinations()->size() != parts.size())
      return op.emitError("cannot be executed: sends for ")
             << op.getDestinations()->size() << " members, but there are " << count;
    results = permute(parts, *op.getDestinations());
    break;
  case sched::CollectiveKind::gather_rows:
  case sched::CollectiveKind::scatter_rows:
    llvm_unreachable("rows are exchanged by themselves");
  }
  for (auto [rank, result] : llvm::zip_equal(members, results))
    store(out, result.reshaped(out.type.getShape()), rank);
  return success();
}

FailureOr<bool> BufferMachine::runCrossing(sched::LaunchCollectiveOp op, sched::CommunicatorOp communicator) {
  FailureOr<Buffer> data = bufferOf(op, op.getIns().front());
  if (failed(data))
    return failure();
  if (op.getKind() != sched::CollectiveKind::all_reduce || !sched::isSame(op.getIns().front(), op.getOuts().front()))
    return op.emitError("cannot be executed: is no all_reduce in place, the only collective over positions");
  RankValues own;
  for (int64_t rank = 0; rank < mesh.getRanks(); ++rank)
    own.push_back(load(*data, rank));
  FailureOr<RankValues> combined = allReduceOverPositions(op, mesh, communicator.getAxes(), op.getReduction(),
                                                          crossings, program.getPosition(), own);
  if (failed(combined))
    return failure();
  if (combined->empty())
    return false;
  checker->begin(op, streams.getNumber(op));
  if (failed(report(op, checker->read(data->window))) || failed(report(op, checker->write(data->window))))
    return failure();
  for (int64_t rank = 0; rank < mesh.getRanks(); ++rank)
    store(*data, (*combined)[rank], rank);
  return true;
}

FailureOr<bool> BufferMachine::run(func::FuncOp function, const FunctionCall &of) {
  call = of;
  if (function.isExternal() || !function.getBody().hasOneBlock() || function.getNumArguments() != 0)
    return function.emitError("cannot be executed: needs one block and no arguments");
  Block &block = function.getBody().front();
  auto first = waiting ? Block::iterator(std::exchange(waiting, nullptr)) : block.begin();
  for (Operation &op : llvm::make_range(first, block.end())) {
    if (!sched::runsIn(&op, call.isLast))
      continue;
    LogicalResult done = success();
    if (auto launch = llvm::dyn_cast<sched::LaunchOp>(op)) {
      done = runLaunch(launch, call.adds);
    } else if (auto map = llvm::dyn_cast<sched::LaunchMapOp>(op)) {
      done = runMap(map, call.adds);
    } else if (auto collective = llvm::dyn_cast<sched::LaunchCollectiveOp>(op)) {
      auto over = SymbolTable::lookupNearestSymbolFrom<sched::CommunicatorOp>(&op, collective.getCommunicatorAttr());
      if (over && over.getPositions()) {
        FailureOr<bool> hasMet = runCrossing(collective, over);
        if (succeeded(hasMet) && !*hasMet) {
          waiting = &op;
          return false;
        }
        done = hasMet;
      } else {
        done = runCollective(collective);
      }
    } else if (auto record = llvm::dyn_cast<sched::RecordOp>(op)) {
      checker->record(record.getEvent(), streams.getNumber(record));
    } else if (auto wait = llvm::dyn_cast<sched::WaitOp>(op)) {
      if (!checker->wait(wait.getEvent(), streams.getNumber(wait)))
        done = op.emitError("waits for event ") << wait.getEvent() << ", which nothing has recorded";
    } else if (!llvm::isa<sched::BufferOp, func::ReturnOp>(op)) {
      done = op.emitError("cannot be executed: is no command");
    }
    if (failed(done))
      return failure();
  }
  return true;
}

FailureOr<RunResult> windlass::interpreter::runCommands(ModuleOp module, const RunInputs &inputs) {
  // What has no slot would be in another's.
  for (sched::ProgramOp program : sched::getPrograms(module))
    for (sched::ScheduleOp schedule : program.getOps<sched::ScheduleOp>())
      if (failed(sched::checkSlots(schedule)))
        return failure();
  return runSchedule(module, inputs,
                     [&](sched::ProgramOp program, Crossings &crossings) -> FailureOr<std::unique_ptr<Machine>> {
                       auto machine = std::make_unique<BufferMachine>(program, inputs.options, crossings);
                       if (failed(machine->prepare()))
                         return failure();
                       return std::unique_ptr<Machine>(std::move(machine));
                     });
}
