#include "windlass/Explain/StepPictures.h"

#include "windlass/Dialect/Sched/IR/Programs.h"
#include "windlass/Dialect/Sched/IR/StepFunctions.h"
#include "windlass/Dialect/Sched/IR/Streams.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

#include <algorithm>

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
  return sched::isOfBackward(step.getRole()) ? Occupation::backward : Occupation::update;
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
  sched::StreamMemories memories = sched::getMemories(table.getKind(command.stream));
  made.copies = memories.read != memories.written;
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
