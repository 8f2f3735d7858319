#include "windlass/Simulator/PredictStep.h"

#include "PositionBuilder.h"

#include "windlass/Dialect/Sched/IR/Programs.h"
#include "windlass/Dialect/Sched/IR/Schedules.h"

#include <algorithm>
#include <deque>

using namespace mlir;
using namespace windlass;

namespace {

double toSeconds(double picoseconds) { return picoseconds * 1e-12; }

/// Returns the window that a function belongs to: the last backward has its own, because it runs at the same time as
/// reductions.
llvm::StringRef getWindow(const StepFunction &function) {
  if (schedule::isTransfer(function.kind))
    return "messages";
  if (function.kind == schedule::ActionKind::Reduce || function.isLast)
    return "last backward";
  if (function.kind == schedule::ActionKind::InputGradient || schedule::endsBackward(function.kind))
    return "backward";
  return schedule::getName(function.kind);
}

/// Makes the windows of a position's step: all runs of the functions of each.
std::vector<StepWindow> makeWindows(const PositionBuilder &position, ArrayRef<simulation::FunctionTotal> totals) {
  std::vector<StepWindow> windows;
  for (llvm::StringRef name : {"forward", "backward", "last backward", "update", "messages"}) {
    StepWindow window;
    window.name = name;
    std::map<int64_t, double> busy;
    for (auto [function, simulated, total] : llvm::zip_equal(position.functions, position.rank.functions, totals)) {
      if (getWindow(function) != name)
        continue;
      window.seconds += toSeconds(total.elapsedPicoseconds);
      for (auto [command, its] : llvm::zip_equal(function.commands, simulated.tasks))
        if (command.op)
          busy[its.stream];
      for (auto [stream, picoseconds] : llvm::enumerate(total.busyPicoseconds))
        if (picoseconds > 0)
          busy[static_cast<int64_t>(stream)] += toSeconds(picoseconds);
    }
    for (auto [stream, seconds] : busy)
      window.busySeconds[position.getShownName(stream)] += seconds;
    if (!window.busySeconds.empty())
      windows.push_back(std::move(window));
  }
  return windows;
}

/// Adds up the runs of a function's commands, and their error bars in `errorSeconds`.
void addTotals(const StepFunction &function, double runs, StepPrediction &prediction, double &errorSeconds) {
  for (const Command &command : function.commands) {
    if (!command.op)
      continue;
    double seconds = toSeconds(static_cast<double>(command.cost.picoseconds) * runs);
    CommandTotal total = command.total;
    total.isUpdate = function.kind == schedule::ActionKind::Update;
    prediction.commands[total] += runs;
    if (command.cost.errorShare)
      errorSeconds += seconds * *command.cost.errorShare;
    else
      prediction.uncalibratedSeconds += seconds;
    prediction.bySource[command.cost.source] += seconds;
    prediction.byFamily[total.family] += seconds;
  }
}

/// Adds a position's part of the step; `prediction.seconds` is known.
void addPosition(const PositionBuilder &position, ArrayRef<simulation::FunctionTotal> totals, double busyPicoseconds,
                 StepPrediction &prediction) {
  double errorSeconds = 0;
  // Adds up by name, so that rounding does not depend on the schedule.
  for (const auto &[name, index] : position.indices)
    addTotals(position.functions[index], totals[index].runs, prediction, errorSeconds);
  prediction.errorSeconds = std::max(prediction.errorSeconds, errorSeconds);
  PositionPrediction &its = prediction.positions.emplace_back();
  its.busySeconds = toSeconds(busyPicoseconds);
  if (prediction.seconds > 0)
    its.bubbleShare = (prediction.seconds - its.busySeconds) / prediction.seconds;
  its.windows = makeWindows(position, totals);
  for (const StepWindow &window : its.windows)
    for (const auto &[stream, busy] : window.busySeconds)
      its.streams[stream] += busy;
}

} // namespace

BusiestStream StepPrediction::getBusiestStream() const {
  BusiestStream busiest;
  for (auto [position, its] : llvm::enumerate(positions))
    for (const auto &[stream, busy] : its.streams)
      if (busy > busiest.seconds)
        busiest = {static_cast<int64_t>(position), stream, busy};
  return busiest;
}

StepPrediction windlass::predictStep(ModuleOp module, const CostModel &costs,
                                     const std::function<void(const SimulatedCommand &)> &visit) {
  if (failed(sched::checkPrograms(module)))
    return {};
  FailureOr<schedule::Pipeline> step = sched::expandSteps(module);
  if (failed(step))
    return {};
  JobPositions job(sched::getPrograms(module), costs);
  std::deque<PositionBuilder> positions;
  simulation::Problem problem;
  for (auto [number, schedule] : llvm::enumerate(step->positions)) {
    PositionBuilder &position = positions.emplace_back(job, static_cast<int64_t>(number), costs);
    if (failed(position.build(schedule.actions)))
      return {};
    problem.ranks.push_back(position.rank);
  }
  problem.uses = job.getUses();
  std::function<void(const simulation::Span &)> see;
  if (visit)
    see = [&](const simulation::Span &span) {
      const Command &command = positions[span.rank].functions[span.function].commands[span.task];
      visit({span.rank, command.op, problem.ranks[span.rank].functions[span.function].tasks[span.task].stream,
             span.beginPicoseconds, span.picoseconds, command.cost.source});
    };
  llvm::Expected<simulation::Result> result = simulation::simulate(problem, see);
  if (!result) {
    module.emitError("cannot be simulated: ") << llvm::toString(result.takeError());
    return {};
  }
  StepPrediction prediction;
  prediction.seconds = toSeconds(static_cast<double>(result->picoseconds));
  for (auto [position, totals, busy] : llvm::zip_equal(positions, result->totals, result->busyPicoseconds))
    addPosition(position, totals, busy, prediction);
  return prediction;
}
