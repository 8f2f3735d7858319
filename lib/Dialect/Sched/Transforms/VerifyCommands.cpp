#include "Views.h"
#include "windlass/Dialect/Sched/Analysis/CommandMoves.h"
#include "windlass/Dialect/Sched/IR/Place.h"
#include "windlass/Dialect/Sched/IR/Programs.h"
#include "windlass/Dialect/Sched/IR/Schedules.h"
#include "windlass/Dialect/Sched/IR/StepFunctions.h"
#include "windlass/Dialect/Sched/IR/Streams.h"
#include "windlass/Dialect/Sched/Transforms/Passes.h"
#include "windlass/Schedule/CollectiveOrder.h"
#include "windlass/Schedule/MemoryTimeline.h"

#include "llvm/ADT/MapVector.h"

#include <map>
#include <optional>

using namespace mlir;
using namespace windlass;
using namespace windlass::sched;
using schedule::ByteRange;

namespace windlass::sched {
#define GEN_PASS_DEF_VERIFYCOMMANDS
#include "windlass/Dialect/Sched/Transforms/Passes.h.inc"
} // namespace windlass::sched

namespace {

/// A resource's bytes and the number of the value that its buffers carry.
struct PlacedResource {
  ByteRange range;
  ResourceOp resource;
  std::optional<int64_t> owner;
};

/// An allocation or the slot of a chunk, what is in it, by offset, and what its bytes hold. What is true of one slot is
/// true of all: the schedule says which of them a micro-batch has.
struct Arena {
  StringAttr name;
  plan::MemoryKind kind = plan::MemoryKind::device;
  int64_t bytes = 0;
  schedule::MemoryTimeline memory;
  SmallVector<PlacedResource> resources;
  /// The slots whose bytes are in the arena.
  SmallVector<SlotsOp> slots;
  /// The chunk, if it is a slot; and whether that is for what a backward hands to its weight gradient.
  std::optional<int64_t> chunk;
  bool isHanded = false;
};

/// What one buffer covers.
struct Coverage {
  Arena *arena = nullptr;
  std::vector<ByteRange> ranges;
  bool isExact = true;
  int64_t owner = 0;
};

class Verifier {
public:
  /// `limits` are the bytes that the arena of a kind may have at most, for the kinds that have a limit.
  Verifier(ProgramOp program, std::map<plan::MemoryKind, int64_t> limits)
      : program(program), limits(std::move(limits)), streams(program) {}

  LogicalResult run() {
    return success(succeeded(checkLevel()) && succeeded(checkStreams()) && succeeded(checkArenas()) &&
                   succeeded(checkResources()) && succeeded(checkBuffers()) && succeeded(checkMemories()) &&
                   succeeded(checkSchedule()) && succeeded(checkStep()) && succeeded(checkCollectives()));
  }

private:
  LogicalResult checkLevel() {
    if (failed(checkStepFunctions(program)))
      return failure();
    for (Operation &op : *program.getBody())
      if (!isa<ResourceOp, ArenaOp, SlotsOp, StreamOp, CommunicatorOp, ScheduleOp, func::FuncOp>(op))
        return op.emitOpError("does not belong to the level of commands");
    for (auto function : program.getOps<func::FuncOp>()) {
      if (function->hasAttr(kScalarFunctionAttr))
        continue;
      if (function.getNumArguments() || function.getNumResults() || !function.getBody().hasOneBlock())
        return function.emitOpError("must be one block without arguments and results at the level of commands");
      for (Operation &op : function.getBody().front())
        if (!isa<BufferOp, LaunchOp, LaunchMapOp, LaunchCollectiveOp, RecordOp, WaitOp, func::ReturnOp>(op))
          return op.emitOpError("is no command: it must be lowered before");
        else if (op.hasAttr(kInLastAttr) && !endsBackward(function))
          return op.emitOpError("is marked ") << kInLastAttr << " outside of the end of a backward";
    }
    return success();
  }

  bool endsBackward(func::FuncOp function) {
    StepAttr step = getStep(function);
    return step && function == getLastBackward(program, step.getChunk());
  }

  LogicalResult checkStreams() {
    StreamOp compute;
    for (StreamOp stream : program.getOps<StreamOp>())
      if (stream.getKind() == StreamKind::compute && std::exchange(compute, stream))
        return stream.emitOpError("is a second stream of kind compute");
    DenseMap<int64_t, CommunicatorOp> owners;
    for (CommunicatorOp communicator : program.getOps<CommunicatorOp>())
      if (CommunicatorOp other = std::exchange(owners[streams.getNumber(communicator)], communicator))
        return communicator.emitOpError("runs on ")
               << communicator.getStreamAttr() << ", the stream of @" << other.getSymName();
    return checkRecords();
  }

  /// A queued wait ends at any later record of its event. A later record by another stream could come before what is
  /// waited for.
  LogicalResult checkRecords() {
    DenseMap<int64_t, RecordOp> records;
    WalkResult result = program.walk([&](RecordOp record) {
      RecordOp first = records.try_emplace(record.getEvent(), record).first->second;
      if (first.getStreamAttr() == record.getStreamAttr())
        return WalkResult::advance();
      record.emitOpError("of event ") << record.getEvent() << " is on " << record.getStreamAttr()
                                      << ", but another is on " << first.getStreamAttr()
                                      << ": give each stream its own events";
      return WalkResult::interrupt();
    });
    return failure(result.wasInterrupted());
  }

  LogicalResult checkArenas() {
    for (ArenaOp arena : program.getOps<ArenaOp>()) {
      if (getArena(program, arena.getKind()) != arena)
        return arena.emitOpError("is a second arena of kind ") << stringifyMemoryKind(arena.getKind());
      int64_t bytes = arena.getBytes();
      arenas.insert(
          {arena.getSymNameAttr(),
           {arena.getSymNameAttr(), arena.getKind(), bytes, schedule::MemoryTimeline(order), {}, {}, {}, false}});
      // Each kind of memory has its own limit: no sum over arenas means anything.
      auto limit = limits.find(arena.getKind());
      if (limit != limits.end() && bytes > limit->second)
        return program.emitOpError("needs ")
               << bytes << " bytes of " << stringifyMemoryKind(arena.getKind()) << " memory but the limit is "
               << limit->second << ": use more ranks, a smaller micro-batch or a larger "
               << (arena.getKind() == plan::MemoryKind::device ? "--memory-limit" : "limit");
    }
    if (!getDeviceArena(program))
      return program.emitOpError("has no arena of kind device");
    return checkSlotAreas();
  }

  LogicalResult checkSlotAreas() {
    std::map<std::pair<int64_t, bool>, SlotsOp> ofChunk;
    for (SlotsOp slots : program.getOps<SlotsOp>()) {
      if (SlotsOp other = std::exchange(ofChunk[{slots.getChunk(), slots.getHanded()}], slots))
        return slots.emitOpError("is of chunk ") << slots.getChunk() << ", as is @" << other.getSymName();
      Arena &around = arenas.find(slots.getArenaAttr().getAttr())->second;
      if (slots.getEnd() > around.bytes)
        return slots.emitOpError("ends at byte ")
               << slots.getEnd() << " but @" << around.name.getValue() << " has " << around.bytes;
      for (SlotsOp other : around.slots)
        if (slots.getOffset() < static_cast<uint64_t>(other.getEnd()) &&
            other.getOffset() < static_cast<uint64_t>(slots.getEnd()))
          return slots.emitOpError("overlaps @") << other.getSymName();
      around.slots.push_back(slots);
      // Inserting moves what the map holds.
      Arena slot{slots.getSymNameAttr(),
                 around.kind,
                 static_cast<int64_t>(slots.getBytes()),
                 schedule::MemoryTimeline(order),
                 {},
                 {},
                 static_cast<int64_t>(slots.getChunk()),
                 slots.getHanded()};
      arenas.insert({slot.name, std::move(slot)});
    }
    return success();
  }

  /// Checks that bytes of an arena are in no slots: what is there names the slots as its arena.
  static LogicalResult checkOutsideSlots(Operation *op, const Arena &arena, ByteRange bytes) {
    for (SlotsOp slots : arena.slots)
      if (bytes.first < bytes.second && bytes.first < slots.getEnd() &&
          static_cast<int64_t>(slots.getOffset()) < bytes.second)
        return op->emitOpError("overlaps the slots @") << slots.getSymName() << ", which it does not name as its arena";
    return success();
  }

  /// The arena that the op's bytes are in.
  FailureOr<Arena *> arenaOf(Operation *op, StringAttr name) {
    auto found = arenas.find(name);
    if (found == arenas.end())
      return op->emitOpError("lies in @") << name.getValue() << ", which is no arena of the program";
    return &found->second;
  }

  LogicalResult checkResources() {
    for (ResourceOp resource : program.getOps<ResourceOp>()) {
      std::optional<Place> place = getPlace(resource);
      if (!place)
        return resource.emitOpError("is placed in no arena");
      FailureOr<Arena *> arena = arenaOf(resource, place->arena);
      if (failed(arena))
        return failure();
      int64_t begin = place->offset, size = getTensorBytes(resource.getTensorType());
      if (begin < 0 || begin > (*arena)->bytes - size)
        return resource.emitOpError("ends at byte ")
               << begin + size << " but @" << (*arena)->name.getValue() << " has " << (*arena)->bytes;
      if (failed(checkOutsideSlots(resource, **arena, {begin, begin + size})))
        return failure();
      std::optional<int64_t> chunk = resource.isOfSlot() ? std::optional(resource.getChunkNumber()) : std::nullopt;
      SlotsOp slots = chunk ? getSlots(program, *chunk) : SlotsOp();
      if (place->arena != (slots ? slots.getSymNameAttr() : place->arena) || (!slots && (*arena)->chunk))
        return resource.emitOpError("is in @") << place->arena.getValue() << ", but "
                                               << (slots ? "belongs to the slots @" : "exists once, outside slots")
                                               << (slots ? slots.getSymName() : StringRef());
      (*arena)->resources.push_back({{begin, begin + size}, resource, std::nullopt});
    }
    for (auto &[name, arena] : arenas) {
      llvm::sort(arena.resources, [](const PlacedResource &a, const PlacedResource &b) {
        return a.range == b.range ? a.resource->isBeforeInBlock(b.resource) : a.range < b.range;
      });
      ResourceOp last;
      int64_t end = 0;
      for (const PlacedResource &placed : arena.resources) {
        if (placed.range.first == placed.range.second)
          continue;
        if (last && placed.range.first < end) {
          ResourceOp earlier = last, later = placed.resource;
          if (later->isBeforeInBlock(earlier))
            std::swap(earlier, later);
          return later.emitOpError("overlaps @") << earlier.getSymName();
        }
        last = placed.resource;
        end = placed.range.second;
      }
    }
    return success();
  }

  LogicalResult checkBuffers() {
    WalkResult result = program.walk([&](BufferOp buffer) {
      auto type = cast<MemRefType>(buffer.getType());
      SmallVector<int64_t> strides;
      int64_t typeOffset = 0;
      if (!type.hasStaticShape() || failed(type.getStridesAndOffset(strides, typeOffset)) || typeOffset != 0 ||
          llvm::any_of(strides, [](int64_t stride) { return stride < 0; }))
        return buffer.emitOpError("has type ") << type << ": shape and strides must be static, strides not negative",
               WalkResult::interrupt();
      if (type.getRank() > kMaxViewRank)
        return buffer.emitOpError("has ")
                   << type.getRank() << " dims but the runtime's views have at most " << kMaxViewRank,
               WalkResult::interrupt();
      int64_t element = getElementBytes(type.getElementType());
      int64_t offset = buffer.getOffset(), end = offset + element;
      for (auto [size, stride] : llvm::zip_equal(type.getShape(), strides))
        end += (size - 1) * stride * element;
      FailureOr<Arena *> arena = arenaOf(buffer, buffer.getArenaAttr().getAttr());
      if (failed(arena))
        return WalkResult::interrupt();
      if (offset < 0 || end > (*arena)->bytes)
        return buffer.emitOpError("ends at byte ")
                   << end << " but @" << (*arena)->name.getValue() << " has " << (*arena)->bytes,
               WalkResult::interrupt();
      if (failed(checkOutsideSlots(buffer, **arena, {offset, end})))
        return WalkResult::interrupt();
      StepAttr step = getStep(buffer->getParentOfType<func::FuncOp>());
      if ((*arena)->chunk && (!step || step.getChunk() != (*arena)->chunk || !hasSlot(step.getRole())))
        return buffer.emitOpError("is in the slots of chunk ")
                   << *(*arena)->chunk << ", which only its forward, backward and evaluate have",
               WalkResult::interrupt();
      if ((*arena)->isHanded && !isOfBackward(step.getRole()))
        return buffer.emitOpError("is in @")
                   << (*arena)->name.getValue() << ", which only backwards and weight gradients have",
               WalkResult::interrupt();
      if (offset % element)
        return buffer.emitOpError("starts at byte ") << offset << ", which is no multiple of its element's " << element,
               WalkResult::interrupt();
      Coverage covered;
      covered.arena = *arena;
      covered.ranges = schedule::getByteRanges(offset, element, {type.getShape().begin(), type.getShape().end()},
                                               {strides.begin(), strides.end()}, covered.isExact);
      if (auto storage = buffer->getAttrOfType<IntegerAttr>(kStorageAttr))
        covered.owner = storage.getInt();
      coverages[buffer.getResult()] = std::move(covered);
      return WalkResult::advance();
    });
    return failure(result.wasInterrupted());
  }

  /// Checks that a command's operands and results are in the memories that its stream works on.
  LogicalResult checkMemories(Operation *op) {
    StreamKind kind = streams.getKind(streams.getNumber(op));
    auto check = [&](StringRef verb, Value buffer, plan::MemoryKind memory) -> LogicalResult {
      const Arena &arena = *coverages[buffer].arena;
      if (arena.kind == memory)
        return success();
      return op->emitOpError(verb) << "s @" << arena.name.getValue() << ", of kind " << stringifyMemoryKind(arena.kind)
                                   << ", but on a stream of kind " << stringifyStreamKind(kind) << " commands " << verb
                                   << " memory of kind " << stringifyMemoryKind(memory);
    };
    auto [ins, outs] = getInsAndOuts(op);
    auto [read, written] = getMemories(kind);
    for (Value in : ins)
      if (failed(check("read", in, read)))
        return failure();
    for (Value out : outs)
      if (failed(check("write", out, written)))
        return failure();
    return success();
  }

  LogicalResult checkMemories() {
    return failure(program
                       .walk([&](Operation *op) {
                         return isCommand(op) && failed(checkMemories(op)) ? WalkResult::interrupt()
                                                                           : WalkResult::advance();
                       })
                       .wasInterrupted());
  }

  /// Whether the command may read `in` where it writes `out`, which covers the same bytes.
  static bool mayWorkInPlace(Operation *op, size_t in, size_t out) {
    if (isa<LaunchMapOp>(op))
      return true;
    if (auto collective = dyn_cast<LaunchCollectiveOp>(op))
      return in == out || (collective.exchangesRows() && in == 0 && out == 2);
    return cast<LaunchOp>(op).mayWriteOver(in, out);
  }

  /// Whether buffers are known to share a byte.
  static bool shareByte(const Coverage &a, const Coverage &b) {
    return a.arena == b.arena && a.isExact && b.isExact && schedule::overlap(a.ranges, b.ranges);
  }

  LogicalResult runCommand(Operation *op, ValueRange ins, ValueRange outs, bool accumulates) {
    order.beginCommand(streams.getNumber(op));
    auto report = [&](const Coverage &covered, const std::string &problem) -> LogicalResult {
      if (problem.empty())
        return success();
      return op->emitOpError(problem) << ", in @" << covered.arena->name.getValue();
    };
    auto read = [&](const Coverage &covered) {
      return report(covered, covered.arena->memory.read(covered.ranges, covered.owner));
    };
    for (Value in : ins)
      if (failed(read(coverages[in])))
        return failure();
    for (auto [o, out] : llvm::enumerate(outs)) {
      const Coverage &written = coverages[out];
      for (auto [i, in] : llvm::enumerate(ins)) {
        if (isSame(in, out) && mayWorkInPlace(op, i, o))
          continue;
        if (shareByte(coverages[in], written))
          return op->emitOpError("writes over its operand ") << i << ", which it may not do in place";
      }
      for (size_t other = 0; other < o; ++other)
        if (shareByte(coverages[outs[other]], written))
          return op->emitOpError("writes results ") << other << " and " << o << " to the same bytes";
      auto launch = dyn_cast<LaunchOp>(op);
      if (accumulates && (!launch || launch.getRow().addsTo(o)) && failed(read(written)))
        return failure();
    }
    for (Value out : outs)
      if (const Coverage &covered = coverages[out];
          failed(report(covered, covered.arena->memory.write(covered.ranges, covered.owner))))
        return failure();
    return success();
  }

  /// A function as the runtime calls it.
  struct Call {
    StepRole role;
    int64_t chunk = 0;
    /// Whether what the function adds up begins anew, and whether it runs for the last time in the step.
    bool isFirst = true, isLast = true;
    /// Whether it reads what the function before it has left in transients.
    bool readsTransients = false;
  };

  /// Whether a function of the role runs for a micro-batch, which is in a slot.
  static bool hasSlot(StepRole role) {
    return role == StepRole::forward || isOfBackward(role) || role == StepRole::evaluate;
  }

  LogicalResult runFunction(func::FuncOp function, const Call &call) {
    for (Operation &op : function.getBody().front()) {
      if (!runsIn(&op, call.isLast))
        continue;
      LogicalResult result = success();
      if (auto launch = dyn_cast<LaunchOp>(op)) {
        result = runCommand(&op, launch.getIns(), launch.getOuts(),
                            launch.getAccumulate() || (launch.getAccumulateAfterFirst() && !call.isFirst));
      } else if (auto map = dyn_cast<LaunchMapOp>(op)) {
        result = runCommand(&op, map.getIns(), map.getOuts(), map.getAccumulateAfterFirst() && !call.isFirst);
      } else if (auto collective = dyn_cast<LaunchCollectiveOp>(op)) {
        // Padding between the parts of a bucket is reduced too, whatever it holds.
        for (Value in : collective.getIns())
          for (const ByteRange &range : coverages[in].ranges)
            coverages[in].arena->memory.adoptPadding(range, coverages[in].owner, kAlignment);
        result = runCommand(&op, collective.getIns(), collective.getOuts(), false);
      } else if (auto record = dyn_cast<RecordOp>(op)) {
        order.record(record.getEvent(), streams.getNumber(record));
      } else if (auto wait = dyn_cast<WaitOp>(op)) {
        std::string problem = order.wait(wait.getEvent(), streams.getNumber(wait));
        if (!problem.empty())
          return op.emitOpError(problem);
      }
      if (failed(result))
        return failure();
    }
    return success();
  }

  /// Every buffer that touches a resource belongs to one value, or to the bucket that holds it.
  LogicalResult assignResources() {
    WalkResult result = program.walk([&](BufferOp buffer) {
      const Coverage &covered = coverages[buffer.getResult()];
      SmallVector<PlacedResource> &places = covered.arena->resources;
      for (const ByteRange &range : covered.ranges) {
        auto place =
            llvm::partition_point(places, [&](const PlacedResource &p) { return p.range.second <= range.first; });
        for (; place != places.end() && place->range.first < range.second; ++place) {
          if (!place->owner)
            place->owner = covered.owner;
          if (*place->owner != covered.owner)
            return buffer.emitOpError("of value ") << covered.owner << " touches @" << place->resource.getSymName()
                                                   << ", which is value " << *place->owner,
                   WalkResult::interrupt();
        }
      }
      return WalkResult::advance();
    });
    return failure(result.wasInterrupted());
  }

  /// Forgets what transients hold outside of slots, and in those of `chunk`.
  void forgetTransients(std::optional<int64_t> chunk) {
    for (auto &[name, arena] : arenas) {
      if (arena.chunk && arena.chunk != chunk)
        continue;
      int64_t position = 0;
      for (const PlacedResource &place : arena.resources) {
        arena.memory.forget({position, place.range.first});
        position = place.range.second;
      }
      arena.memory.forget({position, arena.bytes});
    }
  }

  LogicalResult checkSchedule() {
    for (ScheduleOp op : program.getOps<ScheduleOp>())
      if (failed(checkActions(op)) || failed(checkSlots(op)))
        return failure();
    return success();
  }

  /// What stands for a run: two steps in a row, of two micro-batches and of one, which hold each way in which one
  /// action of a step may follow another. With slots it does not matter whether other micro-batches come between, since
  /// what is in none is forgotten then.
  SmallVector<Call> listCalls() const {
    SmallVector<int64_t> chunks = getChunks(program);
    SmallVector<Call> calls;
    auto addForAll = [&](const Call &call) {
      size_t begin = calls.size();
      for (int64_t chunk : chunks) {
        calls.push_back(call);
        calls.back().chunk = chunk;
      }
      // Gradients come from the last chunk.
      if (call.role != StepRole::forward)
        std::reverse(calls.begin() + begin, calls.end());
    };
    addForAll({StepRole::init});
    for (int64_t microBatches : {2, 1}) {
      schedule::Pipeline step =
          llvm::cantFail(schedule::expandPipeline({}, schedule::makeSequentialStep(microBatches)));
      for (const schedule::Action &action : step.positions.front().actions) {
        bool isBackward = action.kind == schedule::ActionKind::Backward;
        addForAll({*getRole(action.kind), 0, action.isFirst, action.isLast,
                   isBackward || action.kind == schedule::ActionKind::Reduce});
        if (isBackward)
          addForAll({StepRole::weight_gradient, 0, action.isFirst, action.isLast, true});
      }
    }
    addForAll({StepRole::evaluate});
    return calls;
  }

  LogicalResult checkStep() {
    if (failed(assignResources()))
      return failure();
    bool hasInit = llvm::any_of(getStepFunctions(program), [](func::FuncOp f) { return hasRole(f, StepRole::init); });
    bool hasSlots = llvm::any_of(arenas, [](const auto &entry) { return entry.second.chunk.has_value(); });
    StepRole last = StepRole::init;
    for (auto &[name, arena] : arenas)
      for (PlacedResource &place : arena.resources) {
        ResourceKind kind = place.resource.getKind();
        if (llvm::is_contained({ResourceKind::input, ResourceKind::parameter, ResourceKind::master, ResourceKind::state,
                                ResourceKind::scalar, ResourceKind::received},
                               kind) ||
            (kind == ResourceKind::value && !hasInit))
          arena.memory.define(place.range, place.owner.value_or(0));
      }
    for (const Call &call : listCalls()) {
      func::FuncOp function = getStepFunction(program, call.role, call.chunk);
      if (!function)
        continue;
      // All that functions leave to others is the stash, and buckets whose reduction a backward has begun. Where there
      // are slots, the stash is in them.
      if (!call.readsTransients)
        forgetTransients(call.chunk);
      else if (hasSlots &&
               (last == StepRole::forward || (last == StepRole::backward && call.role == StepRole::weight_gradient)))
        forgetTransients(std::nullopt);
      last = call.role;
      if (failed(runFunction(function, call)))
        return failure();
    }
    return success();
  }

  /// Adds the sets of ranks that differ only on the varied axes; the index of each rank's set.
  static std::vector<size_t> addGroups(plan::MeshAttr mesh, const std::vector<bool> &isVaried,
                                       schedule::CollectiveTables &tables) {
    std::vector<size_t> groupOfRank;
    std::map<SmallVector<int64_t>, size_t> groups;
    for (int64_t rank = 0; rank < mesh.getRanks(); ++rank) {
      SmallVector<int64_t> key = mesh.coordinatesOf(rank);
      for (size_t i = 0; i < key.size(); ++i)
        if (isVaried[i])
          key[i] = 0;
      auto [group, isNew] = groups.try_emplace(key, tables.groups.size());
      if (isNew)
        tables.groups.emplace_back();
      tables.groups[group->second].push_back(rank);
      groupOfRank.push_back(group->second);
    }
    return groupOfRank;
  }

  /// Checks that the whole that a gather makes or a scatter takes is as large as the parts of its members.
  static LogicalResult checkPairs(LaunchCollectiveOp call, plan::MeshAttr mesh, const std::vector<bool> &isVaried) {
    int64_t members = 1;
    for (auto [axis, varies] : llvm::zip_equal(mesh.getAxes(), isVaried))
      members *= varies ? axis.getSize() : 1;
    if (call.exchangesRows()) {
      bool gathers = call.getKind() == CollectiveKind::gather_rows;
      int64_t read = typeOf(call.getIns()[0]).getDimSize(0), written = typeOf(call.getOuts()[0]).getDimSize(0);
      if (read * (gathers ? members : 1) != written * (gathers ? 1 : members))
        return call.emitOpError("makes ") << written << " rows of " << read << " among " << members << " members";
      return success();
    }
    bool gathers = call.getKind() == CollectiveKind::all_gather,
         scatters = call.getKind() == CollectiveKind::reduce_scatter;
    for (auto [in, out] : llvm::zip_equal(call.getIns(), call.getOuts())) {
      MemRefType read = typeOf(in), written = typeOf(out);
      if (read.getNumElements() * (gathers ? members : 1) != written.getNumElements() * (scatters ? members : 1) ||
          read.getElementType() != written.getElementType())
        return call.emitOpError("makes ") << written << " of " << read << " among " << members << " members";
    }
    return success();
  }

  /// All ranks run one text; what differs is who their partners are.
  LogicalResult checkCollectives() {
    SmallVector<LaunchCollectiveOp> calls;
    for (const Call &call : listCalls())
      if (auto function = getStepFunction(program, call.role, call.chunk))
        for (LaunchCollectiveOp collective : function.getOps<LaunchCollectiveOp>())
          if (runsIn(collective, call.isLast))
            calls.push_back(collective);
    if (calls.empty())
      return success();
    plan::MeshAttr mesh = program.getMesh();
    schedule::CollectiveTables tables;
    tables.calls.resize(mesh.getRanks());
    std::map<std::vector<bool>, std::vector<size_t>> groupOfRank;
    std::map<std::string, size_t> signatureOf;
    for (LaunchCollectiveOp call : calls) {
      auto communicator = program.lookupSymbol<CommunicatorOp>(call.getCommunicator());
      std::vector<bool> isVaried(mesh.getAxes().size(), false);
      for (StringRef axis : communicator.getAxes().getAsValueRange<StringAttr>()) {
        int64_t index = mesh.indexOf(axis);
        if (index < 0)
          return communicator.emitOpError("names axis '") << axis << "', which the mesh does not have";
        isVaried[index] = true;
      }
      if (failed(checkPairs(call, mesh, isVaried)))
        return failure();
      std::string text;
      llvm::raw_string_ostream(text) << stringifyCollectiveKind(call.getKind()) << " "
                                     << train::stringifyReductionKind(call.getReduction()) << " of "
                                     << call.getIns().getTypes();
      size_t signature = signatureOf.try_emplace(text, signatureOf.size()).first->second;
      if (signature == tables.signatures.size())
        tables.signatures.push_back(text);
      auto [groups, isNew] = groupOfRank.try_emplace(isVaried);
      if (isNew)
        groups->second = addGroups(mesh, isVaried, tables);
      for (int64_t rank = 0; rank < mesh.getRanks(); ++rank)
        tables.calls[rank].push_back({groups->second[rank], signature});
    }
    std::string problem = schedule::replayCollectives(tables);
    if (!problem.empty())
      return program.emitOpError("collectives do not meet: ") << problem;
    return success();
  }

  ProgramOp program;
  std::map<plan::MemoryKind, int64_t> limits;
  llvm::MapVector<StringAttr, Arena> arenas;
  DenseMap<Value, Coverage> coverages;
  StreamTable streams;
  schedule::StreamOrder order;
};

struct VerifyCommands : sched::impl::VerifyCommandsBase<VerifyCommands> {
  using VerifyCommandsBase::VerifyCommandsBase;

  void runOnOperation() override {
    limits.clear();
    if (memoryLimit > 0)
      limits[plan::MemoryKind::device] = memoryLimit;
    if (hostMemoryLimit > 0)
      limits[plan::MemoryKind::host] = hostMemoryLimit;
    if (getPrograms(getOperation()).empty()) {
      getOperation().emitError("has no sched.program");
      return signalPassFailure();
    }
    for (Operation &op : *getOperation().getBody())
      if (failed(check(op)))
        return signalPassFailure();
    auto hasSchedule = [](ProgramOp program) { return !program.getOps<ScheduleOp>().empty(); };
    if (llvm::any_of(getPrograms(getOperation()), hasSchedule) &&
        (failed(checkPrograms(getOperation())) || failed(checkSteps(getOperation()))))
      return signalPassFailure();
    markAllAnalysesPreserved();
  }

  LogicalResult check(Operation &op) {
    if (auto program = dyn_cast<ProgramOp>(op))
      return Verifier(program, limits).run();
    if (isa<train::ParameterOp>(op))
      return success();
    return op.emitOpError("does not belong to the level of commands");
  }

  std::map<plan::MemoryKind, int64_t> limits;
};

} // namespace
