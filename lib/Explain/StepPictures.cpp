#include "windlass/Explain/StepPictures.h"

#include "windlass/Dialect/Sched/Analysis/CommandMoves.h"
#include "windlass/Dialect/Sched/IR/Programs.h"
#include "windlass/Dialect/Sched/IR/StepFunctions.h"
#include "windlass/Dialect/Sched/IR/Streams.h"
#include "windlass/Support/TensorBytes.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/Support/MathExtras.h"

#include <algorithm>
#include <optional>

using namespace mlir;
using namespace windlass;

ArrayRef<const char *> windlass::getOccupationNames() {
  static constexpr const char *names[kOccupations] = {"forward",     "backward", "update",
                                                      "collectives", "copies",   "messages"};
  return names;
}

/// Returns what a command does that is no copy between memories.
static Occupation getOccupation(Operation *op) {
  if (llvm::isa<sched::ResourceOp>(op))
    return Occupation::message;
  if (llvm::isa<sched::LaunchCollectiveOp>(op))
    return Occupation::collective;
  sched::StepAttr step = sched::getStep(op->getParentOfType<func::FuncOp>());
  if (!step || step.getRole() == sched::StepRole::forward)
    return Occupation::forward;
  return step.getRole() == sched::StepRole::backward ? Occupation::backward : Occupation::update;
}

StepTimeline::StepTimeline(ModuleOp module, const StepPrediction &prediction)
    : module(module), prediction(prediction) {}

StepTimeline::Stream StepTimeline::makeStream(const SimulatedCommand &command) const {
  Stream made;
  made.lane.columns.resize(kColumns);
  SmallVector<sched::ProgramOp> programs = sched::getPrograms(module);
  std::string position = programs.size() > 1 ? "position " + std::to_string(command.position) + ", " : "";
  if (auto message = llvm::dyn_cast<sched::ResourceOp>(command.op)) {
    auto placement = module->getAttrOfType<sched::PlacementAttr>(sched::kPlacementAttr);
    made.lane.name = position + sched::getMessagesName(placement.getChunks()[*message.getPeer()]);
    return made;
  }
  sched::StreamTable table(command.op->getParentOfType<sched::ProgramOp>());
  made.lane.name = position + table.getShownName(command.stream);
  sched::StreamKind kind = table.getKind(command.stream);
  made.copies = kind == sched::StreamKind::h2d || kind == sched::StreamKind::d2h;
  return made;
}

void StepTimeline::add(const SimulatedCommand &command) {
  std::pair<int64_t, int64_t> where(command.position, command.stream);
  auto found = streams.find(where);
  if (found == streams.end())
    found = streams.emplace(where, makeStream(command)).first;
  Stream &stream = found->second;
  auto occupation = static_cast<size_t>(stream.copies ? Occupation::copy : getOccupation(command.op));
  const double column = prediction.seconds * 1e12 / kColumns;
  auto begin = static_cast<double>(command.beginPicoseconds), end = begin + static_cast<double>(command.picoseconds);
  busySeconds += (end - begin) * 1e-12;
  if (column <= 0)
    return;
  for (auto i = static_cast<size_t>(begin / column); i < kColumns && static_cast<double>(i) * column < end; ++i) {
    double from = std::max(begin, static_cast<double>(i) * column),
           to = std::min(end, static_cast<double>(i + 1) * column);
    stream.lane.columns[i][occupation] += std::max(0.0, to - from) * 1e-12;
  }
}

std::vector<TimelineLane> StepTimeline::getLanes() const {
  std::vector<TimelineLane> lanes;
  for (const auto &[where, stream] : streams)
    lanes.push_back(stream.lane);
  return lanes;
}

bool StepTimeline::leavesRepeatsOut() const {
  double predicted = 0;
  for (const PositionPrediction &position : prediction.positions)
    for (const auto &[name, seconds] : position.streams)
      predicted += seconds;
  return busySeconds < 0.999 * predicted;
}

static int64_t getPermanentBytes(sched::ArenaOp arena) {
  auto bytes = arena->getAttrOfType<IntegerAttr>(sched::kPermanentBytesAttr);
  return bytes ? bytes.getInt() : 0;
}

/// Adds up resources and slots of the device arena by content. What the arena holds permanently besides is named last.
static std::vector<std::pair<std::string, int64_t>> listPermanent(sched::ProgramOp program, sched::ArenaOp arena) {
  llvm::MapVector<StringRef, int64_t, std::map<StringRef, unsigned>> bytes;
  for (StringRef name : {"weights", "gradients", "optimizer state", "inputs", "slots of micro-batches"})
    bytes[name] = 0;
  for (auto slots : program.getOps<sched::SlotsOp>())
    if (slots.getArena() == arena.getSymName())
      bytes["slots of micro-batches"] += static_cast<int64_t>(slots.getCount() * slots.getBytes());
  for (auto resource : program.getOps<sched::ResourceOp>()) {
    if (resource.getArena() != arena.getSymName())
      continue;
    StringRef name = "others";
    switch (resource.getKind()) {
    case sched::ResourceKind::parameter:
    case sched::ResourceKind::master:
      name = "weights";
      break;
    case sched::ResourceKind::gradient:
    case sched::ResourceKind::reduced:
      name = "gradients";
      break;
    case sched::ResourceKind::state:
      name = "optimizer state";
      break;
    case sched::ResourceKind::input:
      name = "inputs";
      break;
    default:
      break;
    }
    bytes[name] += getTensorBytes(resource.getTensorType());
  }
  int64_t named = 0;
  for (const auto &[name, count] : bytes)
    named += count;
  bytes["others"] += std::max<int64_t>(0, getPermanentBytes(arena) - named);
  std::vector<std::pair<std::string, int64_t>> listed;
  for (const auto &[name, count] : bytes)
    if (count > 0)
      listed.push_back({name.str(), count});
  return listed;
}

namespace {

/// Bytes of the arena that are reused within a step, from the first to the last command that touches them.
struct Lifetime {
  int64_t begin = 0, end = 0;
  size_t first = 0, last = 0;
  bool isInForward = false, isInBackward = false;
};

} // namespace

MemoryCourse windlass::followMemory(sched::ProgramOp program) {
  MemoryCourse course;
  sched::ArenaOp arena = sched::getDeviceArena(program);
  if (!arena)
    return course;
  course.permanent = listPermanent(program, arena);
  int64_t permanent = getPermanentBytes(arena);
  // By the number of the value.
  std::map<int64_t, Lifetime> lifetimes;
  size_t now = 0;
  for (func::FuncOp function : sched::getStepFunctions(program)) {
    sched::StepRole role = sched::getStep(function).getRole();
    if (role == sched::StepRole::init || role == sched::StepRole::evaluate)
      continue;
    course.functions.push_back({function.getSymName().str(), now});
    for (Operation &op : function.front()) {
      if (!sched::isCommand(&op))
        continue;
      auto [ins, outs] = sched::getInsAndOuts(&op);
      for (ValueRange buffers : {ins, outs})
        for (Value buffer : buffers) {
          std::optional<int64_t> storage = sched::getStorage(buffer);
          sched::Extent extent = sched::getExtent(buffer);
          auto [begin, end] = extent.bytes;
          if (!storage || extent.arena != arena.getSymNameAttr() || begin < permanent)
            continue;
          Lifetime &its = lifetimes.try_emplace(*storage, Lifetime{begin, end, now, now}).first->second;
          its.begin = std::min(its.begin, begin);
          its.end = std::max(its.end, end);
          its.last = now;
          its.isInForward |= role == sched::StepRole::forward;
          its.isInBackward |= role == sched::StepRole::backward;
        }
      ++now;
    }
  }
  std::vector<MemoryCourse::Moment> changes(now + 1);
  for (const auto &[storage, its] : lifetimes) {
    int64_t MemoryCourse::Moment::*kind =
        its.isInForward && its.isInBackward ? &MemoryCourse::Moment::stash : &MemoryCourse::Moment::others;
    auto bytes = static_cast<int64_t>(llvm::alignTo(static_cast<uint64_t>(its.end - its.begin), sched::kAlignment));
    changes[its.first].*kind += bytes;
    changes[its.last + 1].*kind -= bytes;
  }
  MemoryCourse::Moment held;
  for (size_t i = 0; i < now; ++i) {
    held = {held.stash + changes[i].stash, held.others + changes[i].others};
    course.moments.push_back(held);
  }
  return course;
}
