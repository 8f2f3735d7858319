// windlass plan: how a model would run on a cluster.
#include "CommandSupport.h"
#include "windlass/Explain/PlanTable.h"
#include "windlass/Explain/StepWork.h"
#include "windlass/Pipeline/Claims.h"

#include "windlass/Commands/Commands.h"
#include "windlass/Dialect/Plan/Transforms/Segments.h"
#include "windlass/Dialect/Sched/IR/Place.h"
#include "windlass/Search/ProblemFile.h"
#include "windlass/Support/OutputFile.h"
#include "windlass/Support/TensorBytes.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/raw_ostream.h"

#include <cmath>

using namespace mlir;
using namespace windlass;

namespace {

/// Of the table of operators: a screen.
constexpr size_t kMostRows = 40;

/// Bytes of the device arena by what they hold.
struct Memory {
  int64_t parameters = 0, gradients = 0, state = 0, inputs = 0, other = 0, arena = 0, largestLiveSet = 0;
};

Memory memoryOf(ModuleOp module) {
  Memory memory;
  for (auto resource : module.getOps<sched::ResourceOp>()) {
    if (resource.getArena() != llvm::StringRef(sched::kDeviceArena))
      continue;
    int64_t bytes = getTensorBytes(resource.getTensorType());
    switch (resource.getKind()) {
    case sched::ResourceKind::parameter:
    case sched::ResourceKind::master:
      memory.parameters += bytes;
      break;
    case sched::ResourceKind::gradient:
    case sched::ResourceKind::reduced:
      memory.gradients += bytes;
      break;
    case sched::ResourceKind::state:
      memory.state += bytes;
      break;
    case sched::ResourceKind::input:
      memory.inputs += bytes;
      break;
    default:
      memory.other += bytes;
    }
  }
  if (sched::ArenaOp arena = sched::getDeviceArena(module)) {
    memory.arena = arena.getBytes();
    if (auto live = arena->getAttrOfType<IntegerAttr>(sched::kLargestLiveSetAttr))
      memory.largestLiveSet = live.getInt();
  }
  return memory;
}

std::string mebibytes(int64_t bytes) { return llvm::formatv("{0:f1} MiB", bytes / double(1 << 20)).str(); }

/// What lives beside parameters, gradients, state and inputs when most does.
struct LiveAtPeak {
  std::string of;
  int64_t count = 0, bytes = 0;
};

/// The operator at which that is, and the largest groups.
std::pair<std::string, std::vector<LiveAtPeak>> peakOf(ModuleOp module) {
  std::pair<std::string, std::vector<LiveAtPeak>> peak;
  if (sched::ArenaOp arena = sched::getDeviceArena(module))
    if (auto its = arena->getAttrOfType<DictionaryAttr>(sched::kPeakAttr)) {
      peak.first = its.getAs<StringAttr>("at").str();
      for (auto group : its.getAs<ArrayAttr>("live").getAsRange<DictionaryAttr>())
        peak.second.push_back({group.getAs<StringAttr>("of").str(), group.getAs<IntegerAttr>("count").getInt(),
                               group.getAs<IntegerAttr>("bytes").getInt()});
    }
  return peak;
}

/// Of the peak: a line.
constexpr size_t kMostAtPeak = 4;

std::string peakText(ModuleOp module) {
  auto [at, live] = peakOf(module);
  if (live.empty())
    return "";
  std::string text = "peak       in " + printable(at) + ", with ";
  for (size_t i = 0; i < std::min(live.size(), kMostAtPeak); ++i)
    text += llvm::formatv("{0}{1} of {2} x {3}", i ? ", " : "", mebibytes(live[i].bytes), live[i].count,
                          printable(live[i].of))
                .str();
  return text + (live.size() > kMostAtPeak ? " and more\n" : "\n");
}

std::string reserveText(const rt::reserve &reserve) {
  std::string text = "reserve    " + mebibytes(reserve.total()) + " beside it";
  const char *separator = ": ";
  for (const auto &[cause, bytes] : reserve.causes())
    if (bytes > 0) {
      text += std::string(separator) + cause + " " + mebibytes(bytes);
      separator = ", ";
    }
  return text + "\n";
}

std::string meshText(ModuleOp module) {
  auto mesh = module->getAttrOfType<plan::MeshAttr>(plan::kMeshAttr);
  std::string text;
  for (plan::AxisAttr axis : mesh.getAxes())
    text += (text.empty() ? "" : " x ") + axis.getName().getValue().str() + "=" + std::to_string(axis.getSize());
  return text.empty() ? "one device" : text;
}

/// "both halves of 'h.0' to 'h.3', mlp of 'h.4'": what is run again, consecutive blocks with one label together.
std::string rerunText(const RerunReport &rerun) {
  std::string text;
  for (size_t i = 0, end; i < rerun.segments.size(); i = end) {
    llvm::StringRef name = rerun.segments[i].first, label = rerun.segments[i].second;
    llvm::StringRef prefix = name.rtrim("0123456789");
    uint64_t number = 0;
    bool isNumbered = !name.drop_front(prefix.size()).getAsInteger(10, number);
    for (end = i + 1; isNumbered && end < rerun.segments.size(); ++end)
      if (rerun.segments[end].first != (prefix + llvm::Twine(number + end - i)).str() ||
          rerun.segments[end].second != label)
        break;
    if (label == plan::kKeptLabel)
      continue;
    std::string what = label == plan::kHalvesLabel ? "both halves" : label == plan::kBlockLabel ? "all" : label.str();
    text += (text.empty() ? "" : ", ") + what + " of " + printable(name) +
            (end > i + 1 ? " to " + printable(rerun.segments[end - 1].first) : "");
  }
  return text;
}

/// The named strategies in the search's model, cheapest first; those that do not fit last.
std::string namedText(const SearchSummary &search) {
  std::vector<SearchSummary::Named> named = search.named;
  llvm::sort(named, [](const auto &a, const auto &b) {
    return std::tuple(a.excessBytes > 0, a.costNanoseconds, a.name) <
           std::tuple(b.excessBytes > 0, b.costNanoseconds, b.name);
  });
  std::string text;
  for (const SearchSummary::Named &each : named) {
    text += text.empty() ? "named      " : "           ";
    text += each.name + " " + secondsText(each.costNanoseconds / 1e9);
    text += each.excessBytes > 0 ? ", " + mebibytes(each.excessBytes) + " too much without recomputing\n" : "\n";
  }
  return text;
}

/// What a step computes beside what the devices can do, a line; empty where there is nothing to say.
std::string rateText(const StepWork &work, double seconds, std::optional<double> peak, int64_t devices) {
  std::vector<std::string> parts;
  if (work.tokens > 0 && seconds > 0)
    parts.push_back(llvm::formatv("{0:f0} tokens/s", work.tokens / seconds));
  if (peak && seconds > 0)
    parts.push_back(llvm::formatv("{0:f1} % of the peak of {1}", 100 * work.flops / (*peak * seconds),
                                  devices == 1 ? "1 device" : std::to_string(devices) + " devices"));
  return parts.empty() ? "" : "rate       " + llvm::join(parts, ", ") + "\n";
}

/// Names the ranks that do the same work, a line; empty where there are none.
std::string repeatsText(const StepWork &work, int64_t devices) {
  int64_t distinct = std::llround(static_cast<double>(devices) / work.repeats);
  return distinct >= devices
             ? ""
             : llvm::formatv("repeats    {0} devices repeat the work of {1}\n", devices, distinct).str();
}

/// How good the plan is by the search's model: a line.
std::string searchText(const SearchSummary &search, int64_t limit) {
  std::string text = llvm::formatv("search     {0:f2} s, {1} mesh{2}; ", search.searchSeconds, search.meshes,
                                   search.meshes == 1 ? "" : "es");
  if (!search.boundNanoseconds)
    return text + "no lower bound of the model's cost: no plan that its rows of memory admit fits into " +
           mebibytes(limit) + "\n";
  return text + llvm::formatv("the model's cost is within {0:f2} % of its lower bound\n", 100 * search.getGap()).str();
}

/// The search's model: what adds up to no time of a step, so that only those see it who ask for more.
std::string modelText(const SearchSummary &search) {
  std::string text = "cost       " + secondsText(search.costNanoseconds / 1e9) +
                     " by the search's model, which adds up operators one by one and is no time of a step\n";
  if (search.boundNanoseconds)
    text += "bound      " + secondsText(*search.boundNanoseconds / 1e9) + ", a lower bound of the model's cost\n" +
            "worth      another GiB per device lowers that bound by " + secondsText(search.nanosecondsPerGib / 1e9) +
            " at most\n";
  return text + namedText(search);
}

} // namespace

int windlass::runPlan(Console &console, const std::vector<std::string> &words) {
  Flags flags("plan MODEL --cluster C [-o plan.json]",
              "Finds how every operator of a training graph runs on a cluster.");
  CommonFlags common;
  CompileFlags compileFlags;
  std::string output, onnxOutput, problemOutput, start, verified;
  double mostGap = 1;
  compileFlags.declarePlan(flags);
  compileFlags.declareCosts(flags);
  compileFlags.declareSettings(flags);
  common.declare(flags);
  flags.addText("o", "FILE", "where the plan goes (default: it is only printed)", output);
  flags.addText(
      "export-onnx", "FILE",
      "where a copy of the model goes that has the plan as ONNX sharding annotations, configuration 'windlass'; "
      "external data stay where they are, relative to it",
      onnxOutput);
  flags.addText("dump-problem", "FILE",
                "where the problem of labels goes that the plan of --strategy auto solves, for windlass-solve",
                problemOutput);
  flags.addInteger("threads", "of the search, which change nothing of the plan (default: as many as processors)",
                   compileFlags.choice.searchThreads, 1, 256);
  flags.addInteger(
      "work-limit",
      "operations of the search for each mesh, about one a nanosecond (default 200000000); the plan depends "
      "on it",
      compileFlags.choice.searchWork, 1, int64_t(1) << 60);
  flags.addText("start", "PLAN", "an older plan of the model, which the search begins with", start);
  flags.add("max-gap", "X",
            "exit code 5 where the search's model gives the plan a cost that is above its lower bound by more than "
            "this part of it, or has no bound",
            [&](llvm::StringRef text) -> std::string {
              if (text.getAsDouble(mostGap) || !(mostGap >= 0 && mostGap <= 1))
                return "--max-gap takes a number from 0 to 1, not '" + text.str() + "'";
              return "";
            });
  flags.addText("verify", "PLAN",
                "computes anew what a plan that --strategy auto made claims, the bound from the certificates beside it",
                verified);
  std::vector<std::string> positional;
  int code;
  if (!parseWords(console, flags, common, words, positional, 1, 1, code))
    return code;
  if (!verified.empty())
    return verifyPlan(console, positional.front(), verified, compileFlags, flags, common);
  if (!problemOutput.empty() && compileFlags.choice.strategy != "auto")
    return console.fail(Code::usage, "--dump-problem needs --strategy auto: a named strategy solves none");
  for (llvm::StringRef flag : {"max-gap", "start", "threads", "work-limit"})
    if (flags.isGiven(flag) && compileFlags.choice.strategy != "auto")
      return console.fail(Code::usage, "--" + flag.str() + " needs --strategy auto: a named strategy is not searched");
  if (compileFlags.cluster.empty())
    return console.fail(Code::usage, "plan needs --cluster, such as --cluster cpu:2 or --cluster h200:8");
  if (!start.empty()) {
    auto plan = std::make_shared<plan::PlanFile>();
    if ((code = readPlanWithClaims(console, start, *plan)))
      return code;
    compileFlags.choice.start = std::move(plan);
  }
  auto context = makeContext(console, common.verbose);
  Compilation compilation(*context, positional.front(),
                          printEvents(console, common.quiet ? Talk::none : Talk::warnings));
  std::string annotated;
  if ((code = planModel(console, compilation, compileFlags, flags, Purpose::program)) ||
      (!onnxOutput.empty() && ((code = console.codeOf(compilation.materialize())) ||
                               (code = console.codeOf(compilation.exportOnnx(annotated))))))
    return code;
  if (!onnxOutput.empty())
    if (std::string error = writeFile(onnxOutput, annotated); !error.empty())
      return console.fail(Code::output, error);
  if (!problemOutput.empty() && compilation.getSearch())
    if (std::string error = writeFile(problemOutput, search::printProblem(compilation.getSearch()->problem));
        !error.empty())
      return console.fail(Code::output, error);
  // The certificates first: a plan that claims something has them beside it.
  if (!output.empty() && compilation.getSearch())
    if (std::string error = writeFile(getCertificatePath(output), compilation.getSearch()->certificate); !error.empty())
      return console.fail(Code::output, error);
  if (!output.empty())
    if (std::string error = writeFile(output, compilation.getPlanText()); !error.empty())
      return console.fail(Code::output, error);

  // What there is to say is said in any case.
  auto finish = [&, &found = compilation.getSearch()]() -> int {
    if (!found || found->getGap() <= mostGap)
      return kDone;
    std::string is = llvm::formatv("but --max-gap is {0:e2}; give a ", mostGap);
    if (!found->boundNanoseconds)
      return console.fail(Code::gap,
                          "the model's cost of the plan has no lower bound, " + is + "higher --memory-limit");
    return console.fail(
        Code::gap,
        llvm::formatv("the model's cost of the plan is {0:e2} of itself above its lower bound, ", found->getGap())
                .str() +
            is + "larger --work-limit");
  };
  ModuleOp module = compilation.getModule();
  Memory memory = memoryOf(module);
  const rt::reserve &reserve = compilation.getReserve();
  const RerunReport &rerun = compilation.getRerun();
  const std::optional<SearchSummary> &found = compilation.getSearch();
  StepPrediction prediction = compilation.predict(compileFlags.choice);
  StepWork work = measureStep(compilation.getPlanned());
  std::optional<double> peak = getPeakFlops(compilation.getCluster(), compileFlags.settings.precision);
  auto dataAxis = module->getAttrOfType<StringAttr>(plan::kDataAxisAttr);
  auto mesh = module->getAttrOfType<plan::MeshAttr>(plan::kMeshAttr);
  int64_t groups = dataAxis ? mesh.sizeOf(dataAxis.getValue()) : 1;
  int64_t microBatches = compileFlags.settings.microBatches;
  if (auto settings = module->getAttrOfType<DictionaryAttr>(train::kSettingsAttr))
    if (auto value = settings.getAs<IntegerAttr>("micro_batches"))
      microBatches = value.getInt();
  bool averagesTokens = module->hasAttr(train::kCountedLabelsAttr);
  if (common.json) {
    llvm::json::OStream json(llvm::outs(), 2);
    json.object([&] {
      json.attribute("model", positional.front());
      json.attribute("cluster", toJson(compilation.getCluster()));
      json.attribute("ranks", compilation.getRanks());
      json.attribute("micro_batches", microBatches);
      json.attribute("average", averagesTokens ? "tokens" : "micro-batches");
      json.attribute("groups", groups);
      json.attributeObject("mesh", [&] {
        for (plan::AxisAttr axis : mesh.getAxes())
          json.attribute(axis.getName().getValue(), axis.getSize());
      });
      json.attributeObject("bytes_per_device", [&] {
        json.attribute("parameters", memory.parameters);
        json.attribute("gradients", memory.gradients);
        json.attribute("optimizer_state", memory.state);
        json.attribute("inputs", memory.inputs);
        json.attribute("arena", memory.arena);
        json.attribute("largest_live_set", memory.largestLiveSet);
        json.attributeObject("reserve", [&] {
          for (const auto &[cause, bytes] : reserve.causes())
            json.attribute(cause, bytes);
          json.attribute("total", reserve.total());
        });
        json.attribute("limit", compileFlags.choice.getMemoryLimit());
      });
      json.attributeObject("peak", [&] {
        auto [at, live] = peakOf(module);
        json.attribute("at", at);
        json.attributeArray("live", [&, &live = live] {
          for (const LiveAtPeak &group : live)
            json.object([&] {
              json.attribute("of", group.of);
              json.attribute("count", group.count);
              json.attribute("bytes", group.bytes);
            });
        });
      });
      json.attribute("dropped_prefetch", compilation.hasDroppedPrefetch());
      json.attributeObject("recompute", [&] {
        json.attributeObject("segments", [&] {
          for (const auto &[name, label] : rerun.segments)
            json.attribute(name, label);
        });
        json.attribute("stash_bytes", rerun.stashBytes);
        json.attribute("stash_bytes_before", rerun.stashBytesBefore);
        json.attribute("flops", rerun.flops);
        json.attribute("flops_before", rerun.flopsBefore);
      });
      writePrediction(json, prediction);
      json.attribute("simulated_seconds", prediction.seconds);
      using Known = std::optional<double>;
      bool hasTime = prediction.seconds > 0;
      json.attribute("tokens_per_s", hasTime && work.tokens > 0 ? Known(work.tokens / prediction.seconds) : Known());
      json.attribute("model_flops", work.flops);
      json.attribute("peak_share", hasTime && peak ? Known(work.flops / (*peak * prediction.seconds)) : Known());
      json.attribute("repeats", work.repeats);
      json.attribute("peak_bytes", memory.largestLiveSet);
      // A named strategy claims nothing; where the rows of memory admit nothing there is no bound.
      bool isBounded = found && found->boundNanoseconds;
      json.attribute("cost_seconds", found ? Known(found->costNanoseconds / 1e9) : Known());
      json.attribute("bound_seconds", isBounded ? Known(*found->boundNanoseconds / 1e9) : Known());
      json.attribute("gap", isBounded ? Known(found->getGap()) : Known());
      json.attribute("seconds_per_gib", isBounded ? Known(found->nanosecondsPerGib / 1e9) : Known());
      json.attribute("search_seconds", found ? Known(found->searchSeconds) : Known());
      if (found)
        json.attributeArray("named", [&] {
          for (const SearchSummary::Named &each : found->named)
            json.object([&] {
              json.attribute("strategy", each.name);
              json.attribute("cost_seconds", each.costNanoseconds / 1e9);
              json.attribute("excess_bytes", std::max<int64_t>(each.excessBytes, 0));
            });
        });
    });
    llvm::outs() << "\n";
    return finish();
  }
  if (common.quiet)
    return finish();
  llvm::outs() << "model      " << positional.front() << "\n"
               << "cluster    " << compilation.getCluster().describe() << ", "
               << mebibytes(compileFlags.choice.getMemoryLimit()) << " per device\n"
               << "ranks      " << compilation.getRanks() << " (" << meshText(module) << ")\n"
               << "step       " << microBatches << (microBatches == 1 ? " micro-batch, " : " micro-batches, ") << groups
               << " at once, " << microBatches / groups << " one after another"
               << (averagesTokens ? ", averaged over tokens" : "") << "\n"
               << repeatsText(work, compilation.getRanks()) << "memory     " << mebibytes(memory.arena)
               << " per device: parameters " << mebibytes(memory.parameters) << ", gradients "
               << mebibytes(memory.gradients) << ", optimizer state " << mebibytes(memory.state) << ", inputs "
               << mebibytes(memory.inputs) << ", activations and scratch "
               << mebibytes(memory.arena - memory.parameters - memory.gradients - memory.state - memory.inputs) << "\n"
               << "packing    " << mebibytes(memory.largestLiveSet) << " is the largest live set, "
               << llvm::formatv("{0:f2} %", memory.arena * 100.0 / std::max<int64_t>(1, memory.largestLiveSet) - 100)
               << " above it the arena\n"
               << peakText(module) << reserveText(reserve) << "stash      " << mebibytes(rerun.stashBytes)
               << " for the backward pass";
  if (rerun.flops > 0)
    llvm::outs() << ", " << mebibytes(rerun.stashBytesBefore) << " if nothing were run again\n"
                 << "recompute  " << rerunText(rerun) << ": "
                 << llvm::formatv("{0:f1} % more FLOPs, {1:f3} GFLOP per micro-batch",
                                  100 * rerun.flops / rerun.flopsBefore, rerun.flops / 1e9);
  if (compilation.hasDroppedPrefetch())
    llvm::outs() << "\nprefetch   none: weights gathered before and gradients added after their blocks do not fit";
  llvm::outs() << "\n" << timeText(prediction) << rateText(work, prediction.seconds, peak, compilation.getRanks());
  if (found)
    llvm::outs() << searchText(*found, compileFlags.choice.getMemoryLimit())
                 << (common.verbose ? modelText(*found) : "");
  for (const std::string &assumption : found ? found->assumptions : std::vector<std::string>())
    llvm::outs() << "assumed    " << assumption << "\n";
  if (std::string table = makePlanTable(compilation.getPlanned(), kMostRows); !table.empty())
    llvm::outs() << "operators, how often, how they are split, and how their weights lie between steps:\n" << table;
  if (!output.empty())
    llvm::outs() << "plan       " << output << "\n";
  return finish();
}
