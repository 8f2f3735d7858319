#include "ProgramLowering.h"

#include "windlass/Dialect/Plan/IR/PlanText.h"
#include "windlass/Dialect/Sched/IR/StepFunctions.h"

#include "mlir/IR/Remarks.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace windlass;
using namespace windlass::sched;

ProgramLowering::ProgramLowering(ProgramOp program, llvm::MapVector<int64_t, Slots> slots, bool hasOneMicroBatch)
    : program(program), slots(std::move(slots)), hasOneMicroBatch(hasOneMicroBatch), symbols(program) {
  streams.push_back({"compute", StreamKind::compute});
  for (func::FuncOp function : getStepFunctions(program))
    if (hasRole(function, StepRole::reduce))
      collectBuckets(function);
  for (ResourceOp resource : program.getOps<ResourceOp>()) {
    if (resourceViews.contains(resource.getSymNameAttr()))
      continue;
    Storage storage;
    storage.bytes = getTensorBytes(resource.getTensorType());
    storage.memory = resource.getLayout().getMemory();
    hasDisk |= storage.memory == plan::MemoryKind::disk;
    storage.isTransient = false;
    storage.isMutableInStep =
        !llvm::is_contained({ResourceKind::input, ResourceKind::parameter, ResourceKind::master, ResourceKind::value,
                             ResourceKind::scalar, ResourceKind::received, ResourceKind::sent},
                            resource.getKind());
    if (resource.isOfSlot() && this->slots.contains(resource.getChunkNumber()))
      storage.chunk = resource.getChunkNumber();
    resourceViews[resource.getSymNameAttr()] = View::dense(storages.size(), resource.getTensorType());
    storages.push_back(storage);
  }
}

void ProgramLowering::collectBuckets(func::FuncOp reduce) {
  DenseMap<Attribute, SmallVector<Operation *, 4>> users;
  for (Operation &op : reduce.getBody().front())
    if (isa<LoadOp, StoreOp, AddToOp>(op))
      users[op.getAttr("resource")].push_back(&op);
  // One load and one store are the bucket's own; an update may load the sum behind them.
  auto isOfBucket = [&](LoadOp load, StoreOp store) {
    return llvm::all_of(users.lookup(load.getResourceAttr()), [&](Operation *user) {
      return user == load || user == store || (isa<LoadOp>(user) && store->isBeforeInBlock(user));
    });
  };

  for (AllReduceOp op : reduce.getOps<AllReduceOp>()) {
    if (op.getPositions())
      continue;
    Bucket bucket;
    bucket.op = op;
    bucket.chunk = getStep(reduce).getChunk();
    for (auto [input, result] : llvm::zip_equal(op.getInputs(), op.getResults())) {
      auto load = input.getDefiningOp<LoadOp>();
      auto store = result.hasOneUse() ? dyn_cast<StoreOp>(*result.user_begin()) : StoreOp();
      if (!load || !store || !input.hasOneUse() || load.getResourceAttr() != store.getResourceAttr() ||
          !isOfBucket(load, store) || getElementTypeOrSelf(input) != getElementTypeOrSelf(op.getInputs().front()))
        break;
      bucket.resources.push_back(getResource(load.getResourceAttr()));
    }
    if (bucket.resources.empty() || bucket.resources.size() != op.getInputs().size())
      continue;
    Storage storage;
    storage.isTransient = false;
    storage.isMutableInStep = true;
    bucket.storage = storages.size();
    for (ResourceOp resource : bucket.resources) {
      View view = View::dense(bucket.storage, resource.getTensorType());
      view.offset = llvm::alignTo(storage.bytes, kAlignment);
      storage.bytes = view.offset + getTensorBytes(resource.getTensorType());
      resourceViews[resource.getSymNameAttr()] = view;
    }
    storages.push_back(storage);
    bucket.communicator = getCommunicator(op.getAxes());
    buckets.push_back(bucket);
  }
}

unsigned ProgramLowering::addTransient(int64_t bytes, plan::MemoryKind memory) {
  Storage storage;
  storage.bytes = bytes;
  storage.memory = memory;
  storages.push_back(storage);
  return storages.size() - 1;
}

FlatSymbolRefAttr ProgramLowering::getIdentityFunction(Type element) {
  FlatSymbolRefAttr &known = identityFunctions[element];
  if (known)
    return known;
  std::string name;
  llvm::raw_string_ostream(name) << "identity_" << element;
  if (!program.lookupSymbol<func::FuncOp>(name)) {
    auto builder = OpBuilder::atBlockEnd(program.getBody());
    auto function = func::FuncOp::create(builder, program.getLoc(), name, builder.getFunctionType(element, element));
    function.setPrivate();
    function->setAttr(kScalarFunctionAttr, builder.getUnitAttr());
    Block *body = function.addEntryBlock();
    builder.setInsertionPointToEnd(body);
    func::ReturnOp::create(builder, program.getLoc(), body->getArguments());
  }
  return known = FlatSymbolRefAttr::get(program.getContext(), name);
}

unsigned ProgramLowering::getStream(StreamKind kind, StringRef name) {
  for (auto [number, stream] : llvm::enumerate(streams))
    if (stream.name == name)
      return number;
  streams.push_back({name.str(), kind});
  return streams.size() - 1;
}

unsigned ProgramLowering::getCommunicator(ArrayAttr axes, DenseI64ArrayAttr positions) {
  for (auto [index, known] : llvm::enumerate(communicators))
    if (known.axes == axes && known.positions == positions)
      return index;
  SmallVector<StringRef> parts(axes.getAsValueRange<StringAttr>());
  if (positions)
    parts.push_back("positions");
  std::string name = "over_" + llvm::join(parts, "_x_");
  communicators.push_back({axes, positions, static_cast<unsigned>(streams.size())});
  streams.push_back({name, StreamKind::communicator});
  return communicators.size() - 1;
}

std::vector<Command *> ProgramLowering::getTimeline() {
  std::vector<Command *> timeline;
  for (func::FuncOp function : getStepFunctions(program))
    if (auto found = functions.find(function); found != functions.end())
      for (Command &command : found->second)
        timeline.push_back(&command);
  return timeline;
}

namespace {

/// The first and last time at which a storage is used; -1 where it is never used.
struct Lifetime {
  int64_t first = -1, last = -1;
};

std::vector<Lifetime> getLifetimes(ArrayRef<Command *> timeline, size_t storages) {
  std::vector<Lifetime> lifetimes(storages);
  for (auto [time, command] : llvm::enumerate(timeline)) {
    auto touch = [&, time = time](unsigned storage) {
      if (lifetimes[storage].first < 0)
        lifetimes[storage].first = time;
      lifetimes[storage].last = time;
    };
    for (const View &view : llvm::concat<const View>(command->ins, command->outs))
      touch(view.storage);
    llvm::for_each(command->keepsAlive, touch);
  }
  return lifetimes;
}

/// Whether the command may write its result `out` over its operand `in` when both are one view.
bool mayShare(const Command &command, size_t in, size_t out) {
  if (command.kind == Command::Kind::Map)
    return true;
  // Kernels with terms come later, from fusions.
  return command.kind == Command::Kind::Launch &&
         getRow(command.kernel).mayShare({command.ins.size(), command.outs.size(), 0}, in, out);
}

/// Returns the name of what a command belongs to: an operator, or else a collective.
std::string getName(const Command &command) {
  if (auto id = dyn_cast_or_null<StringAttr>(command.id))
    return plan::collapseId(id.getValue(), dyn_cast_or_null<plan::RepeatAttr>(command.repeat));
  if (command.kind == Command::Kind::Collective)
    return stringifyCollectiveKind(command.collective).str();
  return command.kind == Command::Kind::Map ? "map" : stringifyKernelKind(command.kernel).str();
}

/// The most groups of values that `sched.peak` lists.
constexpr size_t kMostAtPeak = 8;

/// Returns `sched.peak`: the values that are live at time `peak` of the timeline, by the first command that uses them.
DictionaryAttr describePeak(MLIRContext *context, ArrayRef<Command *> timeline,
                            ArrayRef<schedule::LiveInterval> intervals, int64_t peak) {
  struct Group {
    int64_t count = 0, bytes = 0;
  };
  std::map<std::string, Group> groups;
  for (const schedule::LiveInterval &interval : intervals)
    if (interval.first <= peak && peak <= interval.last) {
      Group &group = groups[getName(*timeline[interval.first])];
      ++group.count;
      group.bytes += interval.bytes;
    }
  std::vector<std::pair<std::string, Group>> sorted(groups.begin(), groups.end());
  llvm::sort(sorted, [](const auto &a, const auto &b) {
    return std::tie(b.second.bytes, a.first) < std::tie(a.second.bytes, b.first);
  });
  Builder builder(context);
  SmallVector<Attribute> live;
  for (const auto &[name, group] : ArrayRef(sorted).take_front(kMostAtPeak))
    live.push_back(builder.getDictionaryAttr({builder.getNamedAttr("bytes", builder.getI64IntegerAttr(group.bytes)),
                                              builder.getNamedAttr("count", builder.getI64IntegerAttr(group.count)),
                                              builder.getNamedAttr("of", builder.getStringAttr(name))}));
  // Copies and collectives belong to the operator before them.
  while (peak > 0 && !timeline[peak]->id)
    --peak;
  std::string at = intervals.empty() ? "" : getName(*timeline[peak]);
  return builder.getDictionaryAttr({builder.getNamedAttr("at", builder.getStringAttr(at)),
                                    builder.getNamedAttr("live", builder.getArrayAttr(live))});
}

} // namespace

void ProgramLowering::shareStorages() {
  std::vector<Command *> timeline = getTimeline();
  std::vector<Lifetime> lifetimes = getLifetimes(timeline, storages.size());
  std::vector<unsigned> replacement(storages.size());
  for (unsigned i = 0; i < storages.size(); ++i)
    replacement[i] = i;

  for (size_t time = 0; time < timeline.size(); ++time) {
    Command *command = timeline[time];
    for (View &view : llvm::concat<View>(command->ins, command->outs))
      view.storage = replacement[view.storage];
    // Lifetimes are those of the compute stream's order.
    if (command->stream != kComputeStream)
      continue;
    llvm::SmallDenseSet<unsigned> taken;
    for (auto [o, out] : llvm::enumerate(command->outs)) {
      unsigned from = out.storage;
      if (!storages[from].isTransient || lifetimes[from].first != static_cast<int64_t>(time))
        continue;
      std::optional<unsigned> best;
      for (const View &source : command->ins) {
        unsigned to = source.storage;
        if (to == from || !storages[to].isTransient || storages[to].bytes != storages[from].bytes ||
            lifetimes[to].last != static_cast<int64_t>(time) || taken.contains(to))
          continue;
        View moved = out;
        moved.storage = to;
        auto isFree = [&, o = o](auto entry) {
          auto [i, view] = entry;
          return view.storage != to || (view == source && mayShare(*command, i, o));
        };
        if (moved == source && llvm::all_of(llvm::enumerate(command->ins), isFree) &&
            (!best || lifetimes[*best].first < lifetimes[to].first))
          best = to;
      }
      if (!best)
        continue;
      taken.insert(*best);
      replacement[from] = *best;
      lifetimes[*best].last = std::max(lifetimes[*best].last, lifetimes[from].last);
      out.storage = *best;
    }
  }

  for (auto &[function, commands] : functions) {
    for (Command &command : commands) {
      for (View &view : llvm::concat<View>(command.ins, command.outs))
        view.storage = replacement[view.storage];
      for (unsigned &storage : command.keepsAlive)
        storage = replacement[storage];
    }
    // Copies onto themselves.
    llvm::erase_if(commands, [](const Command &command) {
      return command.kind == Command::Kind::Launch && getRow(command.kernel).inPlace.mode == InPlace::Mode::dropped &&
             command.ins[0] == command.outs[0];
    });
  }
}

void ProgramLowering::assignSlots() {
  auto list = [&](func::FuncOp function, bool ofReduce) {
    DenseSet<unsigned> touched;
    for (const Command &command : functions.lookup(function))
      if ((command.runs == Command::Runs::InReduce) == ofReduce) {
        for (const View &view : llvm::concat<const View>(command.ins, command.outs))
          touched.insert(view.storage);
        touched.insert(command.keepsAlive.begin(), command.keepsAlive.end());
      }
    return touched;
  };
  bool hasSeveralChunks = slots.size() > 1;
  for (auto &[chunk, its] : slots) {
    func::FuncOp last = getLastBackward(program, chunk);
    DenseSet<unsigned> inLast = list(last, false), inReduce = list(last, true);
    DenseSet<unsigned> inForward = list(getStepFunction(program, StepRole::forward, chunk), false);
    std::vector<unsigned> functionsThatTouch(storages.size());
    for (StepRole role : {StepRole::forward, StepRole::backward, StepRole::weight_gradient})
      for (unsigned number : list(getStepFunction(program, role, chunk), false))
        ++functionsThatTouch[number];
    for (auto [number, storage] : llvm::enumerate(storages)) {
      if (!storage.isTransient)
        continue;
      if (functionsThatTouch[number] > 1) {
        storage.chunk = chunk;
        storage.isHanded = !inForward.contains(number);
      } else if (hasSeveralChunks && inLast.contains(number) && inReduce.contains(number)) {
        storage.isTransient = false; // the backward of another chunk may come between
      }
    }
  }
}

llvm::SetVector<unsigned> ProgramLowering::listResources() {
  llvm::SetVector<unsigned> listed;
  for (const Bucket &bucket : buckets)
    listed.insert(bucket.storage);
  std::map<ResourceKind, SmallVector<ResourceOp>> resources;
  for (ResourceOp resource : program.getOps<ResourceOp>())
    resources[resource.getKind()].push_back(resource);
  for (auto &[kind, ofKind] : resources)
    for (ResourceOp resource : ofKind)
      listed.insert(getView(resource).storage);
  return listed;
}

/// Between forward and backward all of the stash is live. What a backward hands to its weight gradient either takes the
/// place of values that only the backward reads, or has slots of its own. The layout with fewer bytes is taken: few
/// slots are needed where few micro-batches wait for their weight gradients.
void ProgramLowering::placeStash(int64_t chunk, ArrayRef<schedule::LiveInterval> intervals, Slots &its) {
  std::vector<unsigned> all, kept, handed;
  for (auto [number, storage] : llvm::enumerate(storages))
    if (storage.isTransient && storage.chunk == chunk) {
      all.push_back(number);
      (storage.isHanded ? handed : kept).push_back(number);
    }
  auto pack = [&](ArrayRef<unsigned> numbers) {
    std::vector<schedule::LiveInterval> packed;
    for (unsigned number : numbers)
      packed.push_back(intervals[number]);
    schedule::Packing packing = schedule::packIntervals(packed, kAlignment);
    packing.bytes = llvm::alignTo(packing.bytes, kAlignment);
    return packing;
  };
  auto place = [&](SlotArea &area, ArrayRef<unsigned> numbers, const schedule::Packing &packing) {
    for (auto [number, offset] : llvm::zip_equal(numbers, packing.offsets))
      storages[number].offset = area.bytes + offset;
    area.bytes += packing.bytes;
    stashBytes += area.count * packing.bytes;
  };
  schedule::Packing together = pack(all);
  if (!handed.empty()) {
    schedule::Packing ofKept = pack(kept), ofHanded = pack(handed);
    if (its.own.count * ofKept.bytes + its.handed.count * ofHanded.bytes < its.own.count * together.bytes) {
      place(its.own, kept, ofKept);
      place(its.handed, handed, ofHanded);
      return;
    }
  }
  for (unsigned number : handed)
    storages[number].isHanded = false;
  place(its.own, all, together);
}

void ProgramLowering::placeSlots(ArrayRef<unsigned> resources, int64_t &end) {
  std::vector<schedule::LiveInterval> intervals;
  for (auto [storage, lifetime] : llvm::zip_equal(storages, getLifetimes(getTimeline(), storages.size())))
    intervals.push_back({storage.bytes, lifetime.first, lifetime.last});
  for (auto &[chunk, its] : slots) {
    for (unsigned number : resources)
      if (Storage &storage = storages[number]; storage.chunk == chunk) {
        storage.offset = its.own.bytes;
        its.own.bytes = llvm::alignTo(its.own.bytes + storage.bytes, kAlignment);
      }
    placeStash(chunk, intervals, its);
    for (SlotArea *area : {&its.own, &its.handed}) {
      area->offset = end;
      end += area->count * area->bytes;
    }
  }
}

int64_t ProgramLowering::getAlignment(plan::MemoryKind memory) const {
  return hasDisk && memory != plan::MemoryKind::device ? kDiskAlignment : kAlignment;
}

int64_t ProgramLowering::placePermanent(plan::MemoryKind memory, const llvm::SetVector<unsigned> &resources) {
  int64_t end = 0;
  auto place = [&](unsigned number) {
    Storage &storage = storages[number];
    if (!isPermanent(storage) || storage.memory != memory)
      return;
    storage.offset = end;
    end = llvm::alignTo(end + storage.bytes, getAlignment(memory));
  };
  llvm::for_each(resources, place);
  for (unsigned number = 0; number < storages.size(); ++number)
    if (!resources.contains(number))
      place(number);
  return end;
}

void ProgramLowering::placeTransients(plan::MemoryKind memory, int64_t end, ArrayRef<Command *> timeline) {
  std::vector<Lifetime> lifetimes = getLifetimes(timeline, storages.size());
  std::vector<schedule::LiveInterval> intervals;
  std::vector<unsigned> transients;
  for (auto [index, storage] : llvm::enumerate(storages))
    if (storage.isTransient && !storage.chunk && storage.memory == memory && lifetimes[index].first >= 0) {
      intervals.push_back({storage.bytes, lifetimes[index].first, lifetimes[index].last});
      transients.push_back(index);
    }
  schedule::Packing packing = schedule::packIntervals(intervals, getAlignment(memory));
  for (auto [index, offset] : llvm::zip_equal(transients, packing.offsets))
    storages[index].offset = end + offset;
  arenaBytes[memory] = end + packing.bytes;
  if (memory != plan::MemoryKind::device)
    return;
  permanentBytes = end;
  liveBytes = end + packing.largestLiveSet;
  peak = describePeak(program.getContext(), timeline, intervals, packing.peak);
  // The stash is what lives between forward and backward pass; that of slots has been counted with them.
  if (slots.empty()) {
    int64_t border = 0;
    for (auto &[function, commands] : functions)
      if (hasRole(function, StepRole::init) || hasRole(function, StepRole::forward))
        border += static_cast<int64_t>(commands.size());
    for (const schedule::LiveInterval &interval : intervals)
      if (interval.first < border && interval.last >= border)
        stashBytes += llvm::alignTo(interval.bytes, kAlignment);
  }
}

void ProgramLowering::placeStorages() {
  llvm::SetVector<unsigned> resources = listResources();
  int64_t end = placePermanent(plan::MemoryKind::device, resources);
  placeSlots(resources.getArrayRef(), end);
  std::vector<Command *> timeline = getTimeline();
  placeTransients(plan::MemoryKind::device, end, timeline);
  for (plan::MemoryKind memory : {plan::MemoryKind::host, plan::MemoryKind::disk})
    placeTransients(memory, placePermanent(memory, resources), timeline);
  remark::analysis(program.getLoc(), remark::RemarkOpts::name("arena").category("sched-lower-to-commands"))
      << remark::metric("bytes", arenaBytes[plan::MemoryKind::device]) << remark::metric("resource_bytes", end)
      << remark::metric("largest_live_set", liveBytes);
}

FlatSymbolRefAttr ProgramLowering::getArenaName(unsigned storage) const {
  const Storage &its = storages[storage];
  if (its.chunk)
    return slotsNames.at({*its.chunk, its.isHanded});
  return FlatSymbolRefAttr::get(const_cast<ProgramOp &>(program).getContext(),
                                its.memory == plan::MemoryKind::device ? kDeviceArena
                                : its.memory == plan::MemoryKind::host ? kHostArena
                                                                       : kDiskArena);
}

void ProgramLowering::emit() {
  emitArena();
  for (ResourceOp resource : program.getOps<ResourceOp>()) {
    View view = getView(resource);
    resource.setArenaAttr(getArenaName(view.storage));
    resource.setOffset(storages[view.storage].offset + view.offset);
  }
  for (auto &[function, commands] : functions)
    emitFunction(function, commands, /*isReduce=*/false);
  for (func::FuncOp reduce : getStepFunctions(program))
    if (hasRole(reduce, StepRole::reduce))
      emitFunction(reduce, functions[getLastBackward(program, getStep(reduce).getChunk())], /*isReduce=*/true);
  program.walk([&](LaunchCollectiveOp collective) {
    if (collective.exchangesRows() ||
        llvm::is_contained({CollectiveKind::all_to_all, CollectiveKind::permute}, collective.getKind()))
      program.lookupSymbol<CommunicatorOp>(collective.getCommunicator()).setExchanges(true);
  });
}

void ProgramLowering::emitArena() {
  auto builder = OpBuilder::atBlockBegin(program.getBody());
  auto arena = ArenaOp::create(builder, program.getLoc(), kDeviceArena, plan::MemoryKind::device,
                               arenaBytes[plan::MemoryKind::device]);
  arena->setAttr(kLargestLiveSetAttr, builder.getI64IntegerAttr(liveBytes));
  arena->setAttr(kPeakAttr, peak);
  arena->setAttr(kPermanentBytesAttr, builder.getI64IntegerAttr(permanentBytes));
  arena->setAttr(kStashBytesAttr, builder.getI64IntegerAttr(stashBytes));
  for (auto [name, kind] : {std::pair(kHostArena, plan::MemoryKind::host), {kDiskArena, plan::MemoryKind::disk}})
    if (int64_t bytes = arenaBytes[kind])
      ArenaOp::create(builder, program.getLoc(), name, kind, bytes);
  // The model may have parameters of these names.
  auto declare = [&](Operation *op) { return FlatSymbolRefAttr::get(symbols.insert(op)); };
  for (auto &[chunk, its] : slots)
    for (bool isHanded : {false, true}) {
      const SlotArea &area = isHanded ? its.handed : its.own;
      if (isHanded && area.bytes == 0)
        continue;
      std::string name = ((isHanded ? "handed_" : "slots_") + Twine(chunk)).str();
      slotsNames[{chunk, isHanded}] = declare(SlotsOp::create(builder, program.getLoc(), name, chunk, kDeviceArena,
                                                              area.offset, area.count, area.bytes, isHanded));
    }
  for (const Stream &stream : streams)
    streamNames.push_back(declare(StreamOp::create(builder, program.getLoc(), stream.name, stream.kind)));
  for (auto [index, communicator] : llvm::enumerate(communicators))
    communicatorNames.push_back(declare(
        CommunicatorOp::create(builder, program.getLoc(), ("communicator_" + Twine(index)).str(), communicator.axes,
                               communicator.positions, streamNames[communicator.stream].getValue())));
}

void ProgramLowering::emitFunction(func::FuncOp function, ArrayRef<Command> commands, bool isReduce) {
  MLIRContext *context = program.getContext();
  OpBuilder builder(context);
  Region body;
  Block &block = body.emplaceBlock();
  builder.setInsertionPointToEnd(&block);

  llvm::DenseMap<std::tuple<unsigned, int64_t, Type>, Value> buffers;
  auto toBuffer = [&](const View &view, Location loc) -> Value {
    Value &buffer = buffers[{view.storage, view.offset, view.getType()}];
    if (!buffer) {
      auto op = BufferOp::create(builder, loc, view.getType(), getArenaName(view.storage),
                                 builder.getI64IntegerAttr(storages[view.storage].offset + view.offset));
      op->setAttr(kStorageAttr, builder.getI64IntegerAttr(view.storage));
      buffer = op;
    }
    return buffer;
  };
  for (const Command &command : commands) {
    if ((command.runs == Command::Runs::InReduce) != isReduce)
      continue;
    SmallVector<Value> ins, outs;
    for (const View &view : command.ins)
      ins.push_back(toBuffer(view, command.loc));
    for (const View &view : command.outs)
      outs.push_back(toBuffer(view, command.loc));
    Operation *op = nullptr;
    FlatSymbolRefAttr stream = streamNames[command.stream];
    switch (command.kind) {
    case Command::Kind::Launch:
      op = LaunchOp::create(builder, command.loc, command.kernel, stream.getValue(), ins, outs,
                            builder.getDictionaryAttr(command.settings), command.accumulates,
                            command.accumulatesAfterFirst);
      break;
    case Command::Kind::Map:
      op = LaunchMapOp::create(builder, command.loc, TypeRange(), command.function, stream, ins, outs,
                               command.accumulatesAfterFirst ? builder.getUnitAttr() : UnitAttr());
      break;
    case Command::Kind::Collective:
      op = LaunchCollectiveOp::create(builder, command.loc, CollectiveKindAttr::get(context, command.collective),
                                      train::ReductionKindAttr::get(context, command.reduction),
                                      communicatorNames[command.communicator], ins, outs, command.destinations,
                                      command.experts);
      break;
    case Command::Kind::Record:
      op = RecordOp::create(builder, command.loc, command.event, stream.getValue());
      break;
    case Command::Kind::Wait:
      op = WaitOp::create(builder, command.loc, command.event, stream.getValue());
      break;
    }
    if (command.repeat)
      op->setAttr(plan::kRepeatAttr, command.repeat);
    if (command.runs == Command::Runs::InLast)
      op->setAttr(kInLastAttr, builder.getUnitAttr());
    if (Attribute id = command.id ? command.id : command.owner)
      op->setAttr(train::kIdAttr, id);
  }
  func::ReturnOp::create(builder, function.getLoc());

  function.getBody().takeBody(body);
  function.setFunctionType(builder.getFunctionType({}, {}));
  function.removeArgAttrsAttr();
  function.removeResAttrsAttr();
}
