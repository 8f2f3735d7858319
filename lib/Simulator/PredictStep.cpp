#include "windlass/Simulator/PredictStep.h"
#include "windlass/Dialect/Sched/IR/Programs.h"

#include "windlass/Dialect/Plan/Transforms/ReshardPlan.h"
#include "windlass/Dialect/Sched/IR/Schedules.h"
#include "windlass/Dialect/Sched/IR/StepFunctions.h"
#include "windlass/Dialect/Sched/IR/Streams.h"
#include "windlass/Profile/Kernels/CommandKeys.h"
#include "windlass/Simulator/EventSimulation.h"
#include "windlass/Support/TensorBytes.h"

#include <algorithm>

using namespace mlir;
using namespace windlass;

namespace {

double toSeconds(double picoseconds) { return picoseconds * 1e-12; }

/// A command with its cost; empty for a step that takes no time.
struct Command {
  Operation *op = nullptr;
  Cost cost;
  std::string family;
  CommandTotal total = {};
};

/// A function as a first, an inner or a last micro-batch calls it.
struct StepFunction {
  schedule::ActionKind kind;
  bool isLast = false;           ///< of a backward
  std::vector<Command> commands; ///< by step
};

/// The most calls in a row that are folded into one segment; longer rows are repeated piece by piece.
constexpr size_t kMostFolded = 64;

/// The problem of the event simulation for one rank, which stands for all.
class StepBuilder {
public:
  StepBuilder(sched::ProgramOp program, const CostModel &costs)
      : streams(program), program(program), costs(costs), keys(program), mesh(program.getMesh()) {
    for (auto communicator : program.getOps<sched::CommunicatorOp>())
      communicators[communicator.getName()] = communicator;
    rank.isSerial = !costs.overlapsCollectives();
  }

  /// Builds the rank. Fails, with a diagnostic, where the table is malformed or repeats too much that differs, or where
  /// nobody knows how long a command takes.
  LogicalResult build() {
    for (auto op : program.getOps<sched::ScheduleOp>()) {
      FailureOr<schedule::Schedule> actions = sched::expandSchedule(op);
      if (failed(actions))
        return failure();
      addRows(schedule::makeRows(*actions));
    }
    return success(!hasUnknownCost);
  }

  simulation::Rank rank;
  std::vector<StepFunction> functions;
  /// The function of a kind of actions by the kind's name, whether it runs for the first time in the step, and whether
  /// it is the last backward.
  std::map<std::tuple<std::string, bool, bool>, int64_t> indices;
  sched::StreamTable streams;

private:
  void addRows(ArrayRef<schedule::StepRow> rows) {
    for (size_t i = 0; i < rows.size(); ++i) {
      if (!rows[i].isRepeat()) {
        if (rank.segments.empty() || rank.segments.back().count != 1 ||
            rank.segments.back().calls.size() >= kMostFolded)
          rank.segments.emplace_back();
        rank.segments.back().calls.push_back(getFunction(rows[i].action));
        continue;
      }
      simulation::Segment segment;
      segment.count = rows[i].count;
      for (const schedule::StepRow &row : rows.slice(i + 1, rows[i].length))
        segment.calls.push_back(getFunction(row.action));
      rank.segments.push_back(std::move(segment));
      i += rows[i].length;
    }
  }

  int64_t getFunction(const schedule::Action &action) {
    // Only backwards differ where they are the last ones.
    bool isLast = action.isLast && action.kind == schedule::ActionKind::Backward;
    auto [found, isNew] =
        indices.try_emplace({schedule::getName(action.kind).str(), action.isFirst, isLast}, functions.size());
    if (!isNew)
      return found->second;
    functions.push_back({action.kind, isLast, {}});
    rank.functions.push_back({{}, costs.getIssuePicoseconds(action.kind == schedule::ActionKind::Update)});
    std::optional<sched::StepRole> role = sched::getRole(action.kind);
    if (auto function = role ? sched::getStepFunction(program, *role, action.chunk) : func::FuncOp())
      for (Operation &op : function.getBody().front())
        if (sched::runsIn(&op, isLast))
          addStep(&op, !action.isFirst);
    return found->second;
  }

  void addStep(simulation::Step step, Command command = {}) {
    step.picoseconds = command.cost.picoseconds;
    rank.functions.back().steps.push_back(step);
    functions.back().commands.push_back(std::move(command));
  }

  void addStep(Operation *op, bool isLater) {
    using Kind = simulation::Step::Kind;
    if (auto record = llvm::dyn_cast<sched::RecordOp>(op)) {
      addStep({Kind::Record, streams.getNumber(op), static_cast<int64_t>(record.getEvent())});
    } else if (auto wait = llvm::dyn_cast<sched::WaitOp>(op)) {
      addStep({Kind::Wait, streams.getNumber(op), static_cast<int64_t>(wait.getEvent())});
    } else if (auto collective = llvm::dyn_cast<sched::LaunchCollectiveOp>(op)) {
      sched::CommunicatorOp communicator = communicators.lookup(collective.getCommunicator());
      SmallVector<StringAttr> axes;
      for (Attribute axis : communicator.getAxes())
        axes.push_back(llvm::cast<StringAttr>(axis));
      plan::AxesSpan group = plan::getSpan(mesh, axes);
      double bytes = std::max(getBytes(collective.getIn()), getBytes(collective.getOut()));
      std::string kind = sched::stringifyCollectiveKind(collective.getKind()).str();
      CollectiveWork work = CollectiveWork::ofRing(kind, group.members, bytes);
      work.span = group.span;
      addStep({Kind::Work, streams.getNumber(op)}, {op, costs.getCost(work), kind, {kind, 0, bytes, group.members}});
    } else if (llvm::isa<sched::LaunchOp, sched::LaunchMapOp>(op)) {
      addLaunch(op, isLater);
    }
  }

  /// Adds a kernel of the device or the host, or a copy between them.
  void addLaunch(Operation *op, bool isLater) {
    int64_t number = streams.getNumber(op);
    sched::StreamKind kind = streams.getKind(number);
    simulation::Step step = {simulation::Step::Kind::Work, number};
    if (kind == sched::StreamKind::h2d || kind == sched::StreamKind::d2h) {
      double bytes = getBytes(op->getOperand(0));
      std::string family = stringifyStreamKind(kind).str();
      std::optional<Cost> cost = costs.getCopyCost(bytes);
      if (!cost)
        return reportUnknown(op, kind, "how fast the link between devices and hosts is");
      return addStep(step, {op, *cost, family, {family, 0, bytes}});
    }
    const CommandKey &key = keys.get(op, isLater);
    std::optional<Cost> cost =
        kind == sched::StreamKind::host ? costs.getHostCost(key.text, key.work) : costs.getCost(key.text, key.work);
    if (!cost)
      return reportUnknown(op, kind, "how fast hosts compute");
    addStep(step, {op, *cost, key.work.family, {key.work.family, key.work.flops, key.work.bytes}});
  }

  void reportUnknown(Operation *op, sched::StreamKind kind, StringRef what) {
    if (!std::exchange(hasUnknownCost, true))
      op->emitError("cannot be simulated: runs on a stream of kind ")
          << stringifyStreamKind(kind) << ", but the cluster does not say " << what;
  }

  static double getBytes(Value buffer) {
    auto type = llvm::cast<MemRefType>(buffer.getType());
    return static_cast<double>(type.getNumElements() * getElementBytes(type.getElementType()));
  }

  sched::ProgramOp program;
  const CostModel &costs;
  CommandKeys keys;
  plan::MeshAttr mesh;
  bool hasUnknownCost = false;
  llvm::StringMap<sched::CommunicatorOp> communicators;
};

/// Returns the window that a function belongs to: the last backward has its own, because it runs at the same time as
/// reductions.
llvm::StringRef getWindow(const StepFunction &function) {
  if (function.kind == schedule::ActionKind::Reduce || function.isLast)
    return "last backward";
  return schedule::getName(function.kind);
}

/// Makes the windows of a step: all runs of the functions of each.
std::vector<StepWindow> makeWindows(const StepBuilder &step, ArrayRef<simulation::FunctionTotal> totals) {
  std::vector<StepWindow> windows;
  for (llvm::StringRef name : {"forward", "backward", "last backward", "update"}) {
    StepWindow window;
    window.name = name;
    std::map<int64_t, double> busy;
    for (auto [function, simulated, total] : llvm::zip_equal(step.functions, step.rank.functions, totals)) {
      if (getWindow(function) != name)
        continue;
      window.seconds += toSeconds(total.elapsedPicoseconds);
      for (auto [command, its] : llvm::zip_equal(function.commands, simulated.steps))
        if (command.op)
          busy[its.stream] += toSeconds(static_cast<double>(its.picoseconds) * total.runs);
    }
    for (auto [stream, seconds] : busy)
      window.busySeconds[step.streams.getShownName(stream)] += seconds;
    if (!window.busySeconds.empty())
      windows.push_back(std::move(window));
  }
  return windows;
}

/// Adds up the runs of a function's commands.
void addTotals(const StepFunction &function, double runs, StepPrediction &prediction) {
  for (const Command &command : function.commands) {
    if (!command.op)
      continue;
    double seconds = toSeconds(static_cast<double>(command.cost.picoseconds) * runs);
    CommandTotal total = command.total;
    total.isUpdate = function.kind == schedule::ActionKind::Update;
    prediction.commands[total] += runs;
    if (command.cost.errorShare)
      prediction.errorSeconds += seconds * *command.cost.errorShare;
    else
      prediction.uncalibratedSeconds += seconds;
    prediction.bySource[command.cost.source] += seconds;
    prediction.byFamily[command.family] += seconds;
  }
}

} // namespace

std::pair<std::string, double> StepPrediction::getBusiestStream() const {
  std::map<std::string, double> streams;
  for (const StepWindow &window : windows)
    for (const auto &[stream, busy] : window.busySeconds)
      streams[stream] += busy;
  std::pair<std::string, double> busiest;
  for (const auto &stream : streams)
    if (stream.second > busiest.second)
      busiest = stream;
  return busiest;
}

StepPrediction windlass::predictStep(ModuleOp module, const CostModel &costs,
                                     const std::function<void(const SimulatedCommand &)> &visit) {
  FailureOr<sched::ProgramOp> program = sched::getOnlyProgram(module);
  if (failed(program))
    return {};
  StepBuilder step(*program, costs);
  if (failed(step.build()))
    return {};
  std::function<void(const simulation::Span &)> see;
  if (visit)
    see = [&](const simulation::Span &span) {
      const Command &command = step.functions[span.function].commands[span.step];
      visit({command.op, step.rank.functions[span.function].steps[span.step].stream, span.beginPicoseconds,
             span.picoseconds, command.cost.source});
    };
  simulation::Problem problem;
  problem.ranks.push_back(step.rank);
  llvm::Expected<simulation::Result> result = simulation::simulate(problem, see);
  if (!result) {
    module.emitError("cannot be simulated: ") << llvm::toString(result.takeError());
    return {};
  }
  StepPrediction prediction;
  prediction.seconds = toSeconds(static_cast<double>(result->picoseconds));
  // Adds up by name, so that rounding does not depend on the schedule.
  for (const auto &[name, index] : step.indices)
    addTotals(step.functions[index], result->totals.front()[index].runs, prediction);
  prediction.windows = makeWindows(step, result->totals.front());
  return prediction;
}
