// windlass simulate: where the time of a plan's step goes.
#include "CommandSupport.h"

#include "windlass/Commands/Commands.h"
#include "windlass/Dialect/Sched/IR/Streams.h"
#include "windlass/Explain/PredictionText.h"
#include "windlass/Simulator/PredictStep.h"
#include "windlass/Support/OutputFile.h"
#include "windlass/Target/Cpp/OperatorNames.h"

#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;
using namespace windlass;

namespace {

/// The most events of a trace: more than viewers show.
constexpr size_t kMostEvents = 1000000;

/// Returns the number of the process that shows a position. A prediction of one position is process 0, and the
/// measurements of ranks (--profile) are the processes after it, so that other positions come after any rank.
int64_t getProcess(int64_t position) { return position == 0 ? 0 : Cluster::kMaxDevices + position; }

std::string nameOf(Operation *op) {
  if (auto message = llvm::dyn_cast<sched::ResourceOp>(op))
    return message.getKind() == sched::ResourceKind::sent ? "send" : "receive";
  if (auto collective = llvm::dyn_cast<sched::LaunchCollectiveOp>(op))
    return sched::stringifyCollectiveKind(collective.getKind()).str();
  // The names are those that programs give to what they measure (--profile).
  if (auto launch = llvm::dyn_cast<sched::LaunchOp>(op))
    return launch.getRow().entry.str();
  return "map";
}

/// Writes the format of Chrome's trace viewer: times in microseconds, a process for each position, a thread for each
/// stream. Programs write what they measure with the same names and threads (runtime/src/program/timeline.h).
class Trace {
public:
  /// Takes the module at L5 whose step is simulated.
  explicit Trace(ModuleOp module) : module(module) {}

  void add(const SimulatedCommand &command) {
    if (auto message = llvm::dyn_cast<sched::ResourceOp>(command.op))
      peers.insert({{command.position, command.stream}, getPositionOf(*message.getPeer())});
    if (events++ >= kMostEvents)
      return;
    out << (events > 1 ? ",\n" : "\n");
    llvm::json::OStream json(out);
    json.object([&] {
      json.attribute("name", nameOf(command.op));
      json.attribute("ph", "X");
      json.attribute("pid", getProcess(command.position));
      json.attribute("tid", command.stream);
      json.attribute("ts", static_cast<double>(command.beginPicoseconds) * 1e-6);
      json.attribute("dur", static_cast<double>(command.picoseconds) * 1e-6);
      json.attributeObject("args", [&] {
        json.attribute("source", getName(command.source));
        if (std::string name = cpp::getShownOperator(command.op); !name.empty())
          json.attribute("operator", name);
      });
    });
  }

  std::string finish() {
    auto tell = [&](llvm::StringRef what, int64_t position, int64_t stream, const std::string &name) {
      out << (events++ > 0 ? ",\n" : "\n");
      llvm::json::OStream json(out);
      json.object([&] {
        json.attribute("name", what);
        json.attribute("ph", "M");
        json.attribute("pid", getProcess(position));
        json.attribute("tid", stream);
        json.attributeObject("args", [&] { json.attribute("name", name); });
      });
    };
    SmallVector<sched::ProgramOp> programs = sched::getPrograms(module);
    for (sched::ProgramOp program : programs) {
      int64_t position = program.getPosition();
      tell("process_name", position, 0,
           programs.size() == 1 ? "predicted" : "predicted, position " + std::to_string(position));
      sched::StreamTable streams(program);
      for (int64_t i = 0; i < streams.size(); ++i)
        tell("thread_name", position, i, streams.getShownName(i));
    }
    for (auto [ends, peer] : peers)
      tell("thread_name", ends.first, ends.second, sched::getMessagesName(peer));
    out << "\n]}\n";
    return std::move(text);
  }

  size_t events = 0;

private:
  int64_t getPositionOf(int64_t chunk) const {
    return module->getAttrOfType<sched::PlacementAttr>(sched::kPlacementAttr).getChunks()[chunk];
  }

  ModuleOp module;
  /// By position and stream of messages: the position at the other end.
  std::map<std::pair<int64_t, int64_t>, int64_t> peers;
  std::string text = "{\"traceEvents\": [";
  llvm::raw_string_ostream out{text};
};

} // namespace

int windlass::runSimulate(Console &console, const std::vector<std::string> &words) {
  Flags flags(
      "simulate MODEL [--plan plan.json] [-o trace.json]",
      "Simulates a step of a plan: its time, the work that takes it, and a timeline for Chrome's trace viewer.\n"
      "For example: windlass simulate model.onnx --plan plan.json -o trace.json");
  CommonFlags common;
  CompileFlags compileFlags;
  std::string output;
  flags.addText("plan", "FILE", "the plan (default: one is made from the flags below)", compileFlags.planFile);
  flags.addText("o", "FILE", "file for the timeline (default: none)", output);
  compileFlags.declarePlan(flags);
  common.declare(flags);
  std::vector<std::string> positional;
  int code;
  if (!parseWords(console, flags, common, words, positional, 1, 1, code))
    return code;
  if (compileFlags.cluster.empty() && compileFlags.planFile.empty())
    return console.fail(Code::usage,
                        "simulate needs --plan, or --cluster, such as --cluster cpu:2 or --cluster h200:8");
  auto context = makeContext(console, common.verbose);
  Compilation compilation(*context, positional.front(),
                          printEvents(console, common.quiet ? Talk::none : Talk::warnings));
  if ((code = planModel(console, compilation, compileFlags, flags, Purpose::program)))
    return code;
  Trace trace(compilation.getModule());
  StepPrediction prediction =
      compilation.predict(compileFlags.choice, [&](const SimulatedCommand &command) { trace.add(command); });
  size_t commands = trace.events;
  if (!output.empty()) {
    if (std::string error = writeFile(output, trace.finish()); !error.empty())
      return console.fail(Code::output, error);
    if (commands > kMostEvents && !common.quiet)
      console.say("the timeline has the first " + std::to_string(kMostEvents) + " of " + std::to_string(commands) +
                  " commands");
  }
  if (common.json) {
    llvm::json::OStream json(llvm::outs(), 2);
    json.object([&] {
      writePrediction(json, prediction);
      json.attribute("replayed_commands", static_cast<int64_t>(commands));
      json.attributeArray("commands", [&] {
        for (const auto &[total, count] : prediction.commands)
          json.object([&, &total = total, &count = count] {
            json.attribute("family", total.family);
            json.attribute("flops", total.flops);
            json.attribute("bytes", total.bytes);
            json.attribute("members", total.members);
            json.attribute("in_update", total.isUpdate);
            json.attribute("count", count);
          });
      });
    });
    llvm::outs() << "\n";
    return kDone;
  }
  if (common.quiet)
    return kDone;
  llvm::outs() << timeText(prediction);
  std::vector<std::pair<double, std::string>> families;
  double sum = 0;
  for (const auto &[family, seconds] : prediction.byFamily) {
    families.push_back({seconds, family});
    sum += seconds;
  }
  llvm::sort(families, [](const auto &a, const auto &b) {
    return std::pair(-a.first, a.second) < std::pair(-b.first, b.second);
  });
  for (const auto &[seconds, family] : families)
    llvm::outs() << llvm::formatv("  {0,-28} {1,10:f6} s {2,5:f1} %\n", family, seconds,
                                  sum > 0 ? 100 * seconds / sum : 0);
  if (!output.empty())
    llvm::outs() << "timeline   " << output << "\n";
  return kDone;
}
