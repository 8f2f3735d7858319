#include "windlass/Simulator/PredictStep.h"

#include "windlass/Dialect/Plan/Transforms/ReshardPlan.h"
#include "windlass/Dialect/Sched/IR/Schedules.h"
#include "windlass/Simulator/CommandKeys.h"
#include "windlass/Support/TensorBytes.h"

#include <algorithm>

using namespace mlir;
using namespace windlass;

namespace {

double toSeconds(double picoseconds) { return picoseconds * 1e-12; }

class StepWalk {
public:
  StepWalk(ModuleOp module, const CostModel &costs, const std::function<void(const SimulatedCommand &)> &visit)
      : module(module), costs(costs), visit(visit), keys(module),
        mesh(module->getAttrOfType<plan::MeshAttr>(plan::kMeshAttr)) {
    for (auto communicator : module.getOps<sched::CommunicatorOp>()) {
      communicators[communicator.getName()] = communicator;
      std::string &name = streamNames[communicator.getStream()];
      for (Attribute axis : communicator.getAxes())
        name += (name.empty() ? "over " : " x ") + llvm::cast<StringAttr>(axis).getValue().str();
    }
    streamNames[sched::kComputeStream] = "compute";
  }

  StepPrediction run() {
    StepPrediction prediction;
    for (auto op : module.getOps<sched::ScheduleOp>()) {
      FailureOr<schedule::ActionTable> table = sched::getActionTable(op);
      if (failed(table))
        return prediction;
      runItems(*table);
    }
    prediction.seconds = toSeconds(static_cast<double>(std::max(getEnd(), state.host)));
    for (const auto &[function, its] : functions)
      for (const Step &step : its.steps) {
        double picoseconds = static_cast<double>(step.cost.picoseconds) * its.runs;
        if (step.kind != Step::Kind::Work)
          continue;
        CommandTotal total = step.total;
        total.isUpdate = function.first == sched::kUpdateFunction;
        prediction.commands[total] += its.runs;
        if (step.cost.errorShare)
          prediction.errorSeconds += toSeconds(picoseconds * *step.cost.errorShare);
        else
          prediction.uncalibratedSeconds += toSeconds(picoseconds);
        prediction.bySource[step.cost.source] += toSeconds(picoseconds);
        prediction.byFamily[step.family] += toSeconds(picoseconds);
      }
    addWindows(prediction);
    return prediction;
  }

private:
  /// A command with its cost.
  struct Step {
    enum class Kind { Work, Record, Wait };
    Operation *op;
    Kind kind;
    int64_t stream, event = 0;
    Cost cost;
    std::string family;
    CommandTotal total = {};
  };
  struct Function {
    std::vector<Step> steps;
    double runs = 0;
    /// Of all runs, in picoseconds.
    double elapsed = 0;
  };
  /// When streams and events have been reached, and until when the host is busy issuing, in picoseconds.
  struct State {
    std::map<int64_t, int64_t> streams, events;
    int64_t host = 0;
  };

  void addWindows(StepPrediction &prediction) const {
    for (auto [function, name] : {std::pair(sched::kForwardFunction, "forward"),
                                  {sched::kBackwardFunction, "backward"},
                                  {sched::kBackwardReduceFunction, "last backward"},
                                  {sched::kUpdateFunction, "update"}}) {
      StepWindow window;
      window.name = name;
      std::map<int64_t, double> busy;
      for (const auto &[key, its] : functions) {
        if (key.first != function)
          continue;
        window.seconds += toSeconds(its.elapsed);
        for (const Step &step : its.steps)
          if (step.kind == Step::Kind::Work)
            busy[step.stream] += toSeconds(static_cast<double>(step.cost.picoseconds) * its.runs);
      }
      for (auto [stream, seconds] : busy)
        window.busySeconds[streamNames.at(stream)] += seconds;
      if (!window.busySeconds.empty())
        prediction.windows.push_back(std::move(window));
    }
  }

  Function &getFunction(llvm::StringRef name, bool isLater) {
    auto [found, isNew] = functions.try_emplace({name.str(), isLater});
    if (isNew)
      if (auto function = module.lookupSymbol<func::FuncOp>(name))
        for (Operation &op : function.getBody().front())
          addStep(found->second.steps, &op, isLater);
    return found->second;
  }

  void addStep(std::vector<Step> &steps, Operation *op, bool isLater) {
    if (auto record = llvm::dyn_cast<sched::RecordOp>(op)) {
      steps.push_back({op,
                       Step::Kind::Record,
                       static_cast<int64_t>(record.getStream()),
                       static_cast<int64_t>(record.getEvent()),
                       {},
                       ""});
    } else if (auto wait = llvm::dyn_cast<sched::WaitOp>(op)) {
      steps.push_back({op,
                       Step::Kind::Wait,
                       static_cast<int64_t>(wait.getStream()),
                       static_cast<int64_t>(wait.getEvent()),
                       {},
                       ""});
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
      steps.push_back({op,
                       Step::Kind::Work,
                       static_cast<int64_t>(communicator.getStream()),
                       0,
                       costs.getCost(work),
                       kind,
                       {kind, 0, bytes, group.members}});
    } else if (llvm::isa<sched::LaunchOp, sched::LaunchMapOp>(op)) {
      const CommandKey &key = keys.get(op, isLater);
      int64_t stream = op->getAttrOfType<IntegerAttr>("stream").getInt();
      steps.push_back({op,
                       Step::Kind::Work,
                       stream,
                       0,
                       costs.getCost(key.text, key.work),
                       key.work.family,
                       {key.work.family, key.work.flops, key.work.bytes}});
    }
  }

  static double getBytes(Value buffer) {
    auto type = llvm::cast<MemRefType>(buffer.getType());
    return static_cast<double>(type.getNumElements() * getElementBytes(type.getElementType()));
  }

  void runItems(const schedule::ActionTable &items) {
    for (const schedule::TableItem &item : items) {
      if (item.isRepeat())
        runRepeat(item.body, item.count);
      else
        runAction(item.kind);
    }
  }

  void runAction(schedule::ActionKind kind) {
    runFunction(sched::getFunctionName(kind), kind != schedule::ActionKind::Update && microBatch > 0);
    if (kind == schedule::ActionKind::Backward || kind == schedule::ActionKind::BackwardReduce)
      ++microBatch;
  }

  /// Runs turns until they are equal but for when they begin; the rest follows from that.
  void runRepeat(const schedule::ActionTable &body, int64_t count) {
    for (int64_t i = 0; i < count; ++i) {
      int64_t before = getEnd();
      State relative = getRelative(before);
      std::map<std::pair<std::string, bool>, std::pair<double, double>> totals;
      for (const auto &[name, function] : functions)
        totals[name] = {function.runs, function.elapsed};
      int64_t hostBefore = state.host;
      waitsForHost = false;
      runItems(body);
      int64_t left = count - i - 1, period = getEnd() - before;
      State after = getRelative(getEnd());
      // Either the host keeps its distance, or nothing has waited for it and nothing will.
      int64_t hostPeriod = state.host - hostBefore;
      bool isHostSteady = hostPeriod == period || (!waitsForHost && hostPeriod < period);
      // The first micro-batch differs from the later ones, which are equal once their ends are.
      if (i == 0 || left == 0 || after.streams != relative.streams || after.events != relative.events || !isHostSteady)
        continue;
      for (auto *times : {&state.streams, &state.events})
        for (auto &[index, time] : *times)
          time += left * period;
      state.host += left * hostPeriod;
      for (auto &[name, function] : functions) {
        function.runs += static_cast<double>(left) * (function.runs - totals[name].first);
        function.elapsed += static_cast<double>(left) * (function.elapsed - totals[name].second);
      }
      microBatch += left;
      return;
    }
  }

  /// State beside the time `end`.
  State getRelative(int64_t end) const {
    State relative = state;
    for (auto *times : {&relative.streams, &relative.events})
      for (auto &[index, time] : *times)
        time -= end;
    return relative;
  }

  int64_t getEnd() const {
    int64_t end = 0;
    for (const auto &[stream, time] : state.streams)
      end = std::max(end, time);
    return end;
  }

  void runFunction(llvm::StringRef name, bool isLater) {
    Function &function = getFunction(name, isLater);
    ++function.runs;
    int64_t before = getEnd();
    int64_t issue = costs.getIssuePicoseconds(name == sched::kUpdateFunction);
    for (const Step &step : function.steps) {
      int64_t &time = state.streams[step.stream];
      switch (step.kind) {
      case Step::Kind::Record:
        state.events[step.event] = time;
        break;
      case Step::Kind::Wait:
        time = std::max(time, state.events[step.event]);
        break;
      case Step::Kind::Work: {
        state.host += issue;
        int64_t begin = costs.overlapsCollectives() ? time : getEnd();
        if (state.host > begin) {
          begin = state.host;
          waitsForHost = true;
        }
        time = begin + step.cost.picoseconds;
        if (visit)
          visit({step.op, step.stream, begin, step.cost.picoseconds, step.cost.source});
        break;
      }
      }
    }
    function.elapsed += static_cast<double>(getEnd() - before);
  }

  ModuleOp module;
  const CostModel &costs;
  const std::function<void(const SimulatedCommand &)> &visit;
  CommandKeys keys;
  plan::MeshAttr mesh;
  llvm::StringMap<sched::CommunicatorOp> communicators;
  std::map<int64_t, std::string> streamNames;
  std::map<std::pair<std::string, bool>, Function> functions;
  State state;
  /// Whether a command has waited to be issued, since this was last set to false.
  bool waitsForHost = false;
  int64_t microBatch = 0;
};

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
  return StepWalk(module, costs, visit).run();
}
