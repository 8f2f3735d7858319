#include "windlass/Explain/PlanReport.h"

#include "windlass/Dialect/Plan/Transforms/PipelineStep.h"
#include "windlass/Dialect/Plan/Transforms/Segments.h"
#include "windlass/Dialect/Sched/IR/Place.h"
#include "windlass/Explain/PredictionText.h"
#include "windlass/Pipeline/Claims.h"
#include "windlass/Support/Printable.h"
#include "windlass/Support/TensorBytes.h"
#include "windlass/Support/Words.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/JSON.h"

#include <cmath>

using namespace mlir;
using namespace windlass;

namespace {

/// The most rows of the table of operators that are printed: a screen.
constexpr size_t kMostRows = 40;

ArenaBytes measureArena(sched::ProgramOp program) {
  ArenaBytes memory;
  sched::ArenaOp arena = sched::getDeviceArena(program);
  if (!arena)
    return memory;
  memory.arena = arena.getBytes();
  if (auto live = arena->getAttrOfType<IntegerAttr>(sched::kLargestLiveSetAttr))
    memory.largestLiveSet = live.getInt();
  sched::ArenaOp host = sched::getArena(program, plan::MemoryKind::host);
  memory.host = host ? host.getBytes() : 0;
  if (sched::ArenaOp disk = sched::getArena(program, plan::MemoryKind::disk))
    memory.disk = disk.getBytes();
  for (auto resource : program.getOps<sched::ResourceOp>()) {
    int64_t bytes = getTensorBytes(resource.getTensorType());
    if (host && resource.getArena() == host.getSymName())
      (resource.getKind() == sched::ResourceKind::state       ? memory.hostState
       : resource.getKind() == sched::ResourceKind::master    ? memory.hostMasters
       : resource.getKind() == sched::ResourceKind::gradient  ? memory.hostGradients
       : resource.getKind() == sched::ResourceKind::parameter ? memory.hostWeights
                                                              : memory.hostOther) += bytes;
    if (resource.getArena() != arena.getSymName())
      continue;
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
  return memory;
}

std::string mebibytes(int64_t bytes) { return llvm::formatv("{0:f1} MiB", bytes / double(1 << 20)).str(); }

PeakFacts findPeak(sched::ProgramOp program) {
  PeakFacts peak;
  if (sched::ArenaOp arena = sched::getDeviceArena(program))
    if (auto its = arena->getAttrOfType<DictionaryAttr>(sched::kPeakAttr)) {
      peak.at = its.getAs<StringAttr>("at").str();
      for (auto group : its.getAs<ArrayAttr>("live").getAsRange<DictionaryAttr>())
        peak.live.push_back({group.getAs<StringAttr>("of").str(), group.getAs<IntegerAttr>("count").getInt(),
                             group.getAs<IntegerAttr>("bytes").getInt()});
    }
  return peak;
}

/// The most groups of values at the peak that are printed: a line.
constexpr size_t kMostAtPeak = 4;

std::string peakText(const PeakFacts &peak) {
  const std::vector<PeakFacts::Live> &live = peak.live;
  if (live.empty())
    return "";
  std::string text = "peak       in " + printable(peak.at) + ", with ";
  for (size_t i = 0; i < std::min(live.size(), kMostAtPeak); ++i)
    text += llvm::formatv("{0}{1} of {2} x {3}", i ? ", " : "", mebibytes(live[i].bytes), live[i].count,
                          printable(live[i].of))
                .str();
  return text + (live.size() > kMostAtPeak ? " and more\n" : "\n");
}

std::string reserveText(const rt::reserve &reserve) {
  std::string text = "reserve    " + mebibytes(reserve.total()) + " besides it";
  if (reserve.given)
    return text + ", given\n";
  const char *separator = ": ";
  for (const auto &[cause, bytes] : reserve.causes())
    if (bytes > 0) {
      text += std::string(separator) + cause + " " + mebibytes(bytes);
      separator = ", ";
    }
  return text + "\n";
}

std::string meshText(const PlanReport &report) {
  std::string text;
  for (const auto &[axis, size] : report.mesh)
    text += (text.empty() ? "" : " x ") + axis + "=" + std::to_string(size);
  return text.empty() ? "one device" : text;
}

/// Returns the recomputed segments as text, such as "both halves of 'h.0' to 'h.3', mlp of 'h.4'": consecutive blocks
/// with one label together.
std::string recomputeText(const RecomputeReport &recompute) {
  std::string text;
  for (size_t i = 0, end; i < recompute.segments.size(); i = end) {
    llvm::StringRef name = recompute.segments[i].first, label = recompute.segments[i].second;
    llvm::StringRef prefix = name.rtrim("0123456789");
    uint64_t number = 0;
    bool isNumbered = !name.drop_front(prefix.size()).getAsInteger(10, number);
    for (end = i + 1; isNumbered && end < recompute.segments.size(); ++end)
      if (recompute.segments[end].first != (prefix + llvm::Twine(number + end - i)).str() ||
          recompute.segments[end].second != label)
        break;
    if (label == plan::kKeptLabel)
      continue;
    std::string what = label == plan::kHalvesLabel ? "both halves" : label == plan::kBlockLabel ? "all" : label.str();
    text += (text.empty() ? "" : ", ") + what + " of " + printable(name) +
            (end > i + 1 ? " to " + printable(recompute.segments[end - 1].first) : "");
  }
  return text;
}

/// Returns the named strategies in the search's model, cheapest first; those that do not fit come last.
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

/// Returns a line with the tokens per second and the share of the devices' peak; empty where neither is known.
std::string rateText(const PlanReport &report) {
  std::vector<std::string> parts;
  if (double tokens = report.getTokensPerSecond(); tokens > 0)
    parts.push_back(llvm::formatv("{0:f0} tokens/s", tokens));
  if (std::optional<double> share = report.getPeakShare())
    parts.push_back(llvm::formatv("{0:f1} % of the peak of {1}", 100 * *share,
                                  report.ranks == 1 ? "1 device" : std::to_string(report.ranks) + " devices"));
  return parts.empty() ? "" : "rate       " + llvm::join(parts, ", ") + "\n";
}

/// Returns a line that says how many ranks do the same work; empty where no two do.
std::string repeatsText(const StepWork &work, int64_t devices) {
  int64_t distinct = std::llround(static_cast<double>(devices) / work.repeats);
  return distinct >= devices
             ? ""
             : llvm::formatv("repeats    {0} devices repeat the work of {1}\n", devices, distinct).str();
}

/// Returns the end of a sentence that says why a choice that was tried has no plan.
std::string whyNone(const OffloadTry &tried) { return tried.hadToBeat ? " gave nothing shorter" : " does not fit"; }
std::string whyNone(const MergeTry &) { return " does not fit"; }

/// Returns a line that says what was chosen among choices that were tried, and how long a step takes with the others;
/// empty where nothing was tried.
template <class Try, class NameOf>
std::string triedText(llvm::StringRef label, const std::string &chosen, llvm::ArrayRef<Try> tries, NameOf nameOf) {
  if (tries.empty())
    return "";
  std::string text = llvm::formatv("{0,-10} {1}", label, chosen);
  for (const Try &tried : tries)
    if (std::string name = nameOf(tried); name != chosen)
      text += "; " + name + (tried.stepSeconds ? " takes " + secondsText(*tried.stepSeconds) : whyNone(tried));
  return text + "\n";
}

/// Returns lines that say with which offloads and numbers of merged micro-batches plans were searched.
std::string triedText(const PlanReport &report) {
  return triedText("merge", std::to_string(report.merge), report.merges,
                   [](const MergeTry &tried) { return std::to_string(tried.merge); }) +
         (report.offloads.empty()
              ? ""
              : triedText("offload", plan::stringifyOffload(report.getOffload()).str(), report.offloads,
                          [](const OffloadTry &tried) { return plan::stringifyOffload(tried.offload).str(); }));
}

/// Returns what plans the bound is of, as " of 1 or 2 stages, cut and scheduled as the search does with --offload
/// optimizer"; empty where it is of all plans that were searched.
std::string boundedText(const PlanReport &report) {
  std::string text = report.search->hasStages() ? " " + describeBoundStages(report.search->boundStages) : "";
  plan::Offload offload = report.search->boundOffload;
  if (!report.offloads.empty() || offload != plan::Offload::none)
    text += " with --offload " + plan::stringifyOffload(offload).str();
  if (!report.merges.empty())
    text += " with --merge " + std::to_string(report.merge);
  return text;
}

/// Returns a line that says how near the plan is to the best one.
std::string searchText(const PlanReport &report) {
  const SearchSummary &search = *report.search;
  std::string text = llvm::formatv("search     {0:f2} s, {1} mesh{2}; ", search.searchSeconds, search.meshes,
                                   search.meshes == 1 ? "" : "es");
  for (auto [stages, seconds] : search.triedStages)
    if (stages != search.stages)
      text += countOf(stages, "stage") +
              (seconds ? " take " + secondsText(*seconds) + " or less" : " take longer or do not fit") + "; ";
  if (!search.boundNanoseconds)
    return text + "no lower bound of the step: no plan that the model's rows of memory admit fits into " +
           mebibytes(report.memoryLimit) + "\n";
  std::optional<double> ratio = search.getStepOverBound();
  std::string bounded = boundedText(report), of = bounded.empty() ? "" : " over plans" + bounded;
  return text + (ratio ? llvm::formatv("the step is {0:f3} times its lower bound{1}\n", *ratio, of).str()
                       : "the lower bound of the step is 0\n");
}

/// Returns the costs in the search's model, which do not add up to the time of a step, so that they are printed on
/// demand only.
std::string modelText(const PlanReport &report) {
  const SearchSummary &search = *report.search;
  std::string text = "cost       " + secondsText(search.costNanoseconds / 1e9) +
                     " by the search's model, which adds up operators one by one and is no time of a step\n";
  if (search.boundNanoseconds)
    text += "bound      " + secondsText(*search.boundNanoseconds / 1e9) +
            ", a lower bound of the steps of all searched plans" + boundedText(report) + "\n" +
            "price      another GiB per device lowers that bound by " + secondsText(search.nanosecondsPerGib / 1e9) +
            " at most\n";
  return text + namedText(search);
}

} // namespace

double PlanReport::getTokensPerSecond() const {
  return work.tokens > 0 && prediction.seconds > 0 ? work.tokens / prediction.seconds : 0;
}

plan::Offload PlanReport::getOffload() const {
  auto seconds = [](const OffloadTry &tried) { return tried.stepSeconds.value_or(INFINITY); };
  const OffloadTry *best =
      llvm::min_element(offloads, [&](const OffloadTry &a, const OffloadTry &b) { return seconds(a) < seconds(b); });
  // Where no trial fits, the last one is planned, which needs least of a device.
  return best->stepSeconds ? best->offload : offloads.back().offload;
}

std::optional<double> PlanReport::getPeakShare() const {
  if (!peakFlops || prediction.seconds <= 0)
    return std::nullopt;
  return work.flops / (*peakFlops * prediction.seconds);
}

PlanReport windlass::describePlan(Compilation &compilation, llvm::StringRef model, const CompileSettings &settings,
                                  const PlanChoice &choice) {
  ModuleOp module = compilation.getModule();
  PlanReport report;
  report.model = model.str();
  report.cluster = compilation.getCluster();
  report.ranks = compilation.getRanks();
  report.microBatches = train::getMicroBatches(module);
  report.merge = train::getMerge(module);
  report.merges = compilation.getMergeTries();
  sched::ProgramOp program = compilation.getProgram();
  plan::MeshAttr mesh = program.getMesh();
  for (plan::AxisAttr axis : mesh.getAxes())
    report.mesh.push_back({axis.getName().getValue().str(), axis.getSize()});
  report.replicas = mesh.sizeOf(plan::AxisRole::replica);
  if (auto its = compilation.getPlanned()->getAttrOfType<plan::PipelineAttr>(plan::kPipelineAttr))
    report.pipeline = PipelineFacts{its.getPositions(), its.getSchedule().str(), int64_t(program.getPosition())};
  report.averagesTokens = module->hasAttr(train::kCountedLabelsAttr);
  report.memory = measureArena(program);
  report.reserve = compilation.getReserve();
  report.memoryLimit = choice.getMemoryLimit();
  report.peak = findPeak(program);
  report.recompute = compilation.getRecompute();
  report.hasDroppedPrefetch = compilation.hasDroppedPrefetch();
  report.prediction = compilation.predict(choice);
  report.work = measureStep(compilation.getPlanned());
  report.peakFlops = getPeakFlops(compilation.getCluster(), settings.precision);
  if (compilation.getSearch())
    report.search = &*compilation.getSearch();
  report.offloads = compilation.getOffloadTries();
  report.rows = listPlanRows(compilation.getPlanned());
  return report;
}

/// Prints the lines about memory.
static void printMemory(const PlanReport &report, llvm::raw_ostream &out) {
  const ArenaBytes &memory = report.memory;
  const RecomputeReport &recompute = report.recompute;
  out << "memory     " << mebibytes(memory.arena) << " per device"
      << (report.pipeline
              ? " of stage " + std::to_string(report.pipeline->largestStage) + ", which needs the most: parameters "
              : ": parameters ")
      << mebibytes(memory.parameters) << ", gradients " << mebibytes(memory.gradients) << ", optimizer state "
      << mebibytes(memory.state) << ", inputs " << mebibytes(memory.inputs) << ", activations and scratch "
      << mebibytes(memory.arena - memory.parameters - memory.gradients - memory.state - memory.inputs) << "\n"
      << "packing    " << mebibytes(memory.largestLiveSet) << " is the largest live set, "
      << llvm::formatv("{0:f2} %", memory.arena * 100.0 / std::max<int64_t>(1, memory.largestLiveSet) - 100)
      << " above it the arena\n"
      << peakText(report.peak) << reserveText(report.reserve) << "stash      " << mebibytes(recompute.stashBytes)
      << (report.pipeline ? " of a micro-batch in all stages, for the backward pass" : " for the backward pass");
  if (recompute.flops > 0)
    out << ", " << mebibytes(recompute.stashBytesBefore) << " if nothing were recomputed\n"
        << "recompute  " << recomputeText(recompute) << ": "
        << llvm::formatv("{0:f1} % more FLOPs, {1:f3} GFLOP per micro-batch",
                         100 * recompute.flops / recompute.flopsBefore, recompute.flops / 1e9);
  if (memory.host > 0)
    out << "\nhost       " << mebibytes(memory.host) << " of the host's memory per device: master copies "
        << mebibytes(memory.hostMasters) << ", optimizer state " << mebibytes(memory.hostState)
        << (memory.hostGradients > 0 ? ", gradients " + mebibytes(memory.hostGradients) : "")
        << (memory.hostWeights > 0 ? ", weights " + mebibytes(memory.hostWeights) : "") << ", tensors on their way "
        << mebibytes(memory.host - memory.hostMasters - memory.hostState - memory.hostGradients - memory.hostWeights -
                     memory.hostOther);
  if (memory.disk > 0)
    out << "\ndisk       " << mebibytes(memory.disk)
        << " of the host's disk per device: master copies and optimizer state, which each update reads and writes";
  if (report.hasDroppedPrefetch)
    out << "\nprefetch   none: weights gathered before and gradients added after their blocks do not fit";
  out << "\n";
}

void windlass::printText(const PlanReport &report, bool showsModel, llvm::raw_ostream &out) {
  out << "model      " << report.model << "\n"
      << "cluster    " << report.cluster.describe() << ", " << mebibytes(report.memoryLimit) << " per device\n"
      << "ranks      " << report.ranks
      << (report.pipeline ? llvm::formatv(" in {0} stages by {1}", report.pipeline->stages,
                                          report.pipeline->schedule == plan::kOwnSchedule ? "orders of its own"
                                                                                          : report.pipeline->schedule)
                                .str()
                          : "")
      << " (" << meshText(report) << ")\n"
      << "step       " << report.microBatches << (report.microBatches == 1 ? " micro-batch, " : " micro-batches, ")
      << report.replicas * report.merge << " at once"
      << (report.merge > 1
              ? llvm::formatv(" ({0}, with {1} merged)", countOf(report.replicas, "replica"), report.merge).str()
              : "")
      << ", " << report.microBatches / report.replicas / report.merge << " one after another"
      << (report.averagesTokens ? ", averaged over tokens" : "") << "\n"
      << repeatsText(report.work, report.ranks);
  printMemory(report, out);
  out << timeText(report.prediction) << rateText(report) << triedText(report);
  if (report.search) {
    out << searchText(report) << (showsModel ? modelText(report) : "");
    for (const std::string &assumption : report.search->assumptions)
      out << "assumed    " << assumption << "\n";
  }
  if (!report.rows.empty())
    out << "operators, their number, how they are split, and how their weights are laid out between steps:\n"
        << makePlanTable(report.rows, kMostRows);
}

/// Writes the choices that were tried, each under `key` with the seconds of its step, as the array `tried_<key>s`.
template <class Try, class ValueOf>
static void writeTries(llvm::json::OStream &json, const std::string &key, llvm::ArrayRef<Try> tries, ValueOf valueOf) {
  json.attributeArray("tried_" + key + "s", [&] {
    for (const Try &tried : tries)
      json.object([&] {
        json.attribute(key, valueOf(tried));
        json.attribute("step_seconds", tried.stepSeconds);
      });
  });
}

static void writeMemory(llvm::json::OStream &json, const PlanReport &report) {
  json.attributeObject("bytes_per_device", [&] {
    json.attribute("parameters", report.memory.parameters);
    json.attribute("gradients", report.memory.gradients);
    json.attribute("optimizer_state", report.memory.state);
    json.attribute("inputs", report.memory.inputs);
    json.attribute("arena", report.memory.arena);
    json.attribute("largest_live_set", report.memory.largestLiveSet);
    json.attribute("host", report.memory.host);
    json.attribute("disk", report.memory.disk);
    json.attributeObject("reserve", [&] {
      for (const auto &[cause, bytes] : report.reserve.causes())
        json.attribute(cause, bytes);
      json.attribute("total", report.reserve.total());
    });
    json.attribute("limit", report.memoryLimit);
  });
  json.attributeObject("peak", [&] {
    json.attribute("at", report.peak.at);
    json.attributeArray("live", [&] {
      for (const PeakFacts::Live &group : report.peak.live)
        json.object([&] {
          json.attribute("of", group.of);
          json.attribute("count", group.count);
          json.attribute("bytes", group.bytes);
        });
    });
  });
  json.attribute("dropped_prefetch", report.hasDroppedPrefetch);
  json.attributeObject("recompute", [&] {
    json.attributeObject("segments", [&] {
      for (const auto &[name, label] : report.recompute.segments)
        json.attribute(name, label);
    });
    json.attribute("stash_bytes", report.recompute.stashBytes);
    json.attribute("stash_bytes_before", report.recompute.stashBytesBefore);
    json.attribute("flops", report.recompute.flops);
    json.attribute("flops_before", report.recompute.flopsBefore);
  });
}

/// Writes the search's claims. A named strategy claims nothing; where the memory constraints admit no plan there is no
/// bound.
static void writeSearch(llvm::json::OStream &json, const SearchSummary *found) {
  using Optional = std::optional<double>;
  bool isBounded = found && found->boundNanoseconds;
  json.attribute("cost_seconds", found ? Optional(found->costNanoseconds / 1e9) : Optional());
  json.attribute("bound_seconds", isBounded ? Optional(*found->boundNanoseconds / 1e9) : Optional());
  json.attributeArray("bound_stages", [&] {
    for (int64_t stages : isBounded ? found->boundStages : std::vector<int64_t>())
      json.value(stages);
  });
  json.attribute("step_over_bound", found ? found->getStepOverBound() : Optional());
  json.attribute("seconds_per_gib", isBounded ? Optional(found->nanosecondsPerGib / 1e9) : Optional());
  json.attribute("search_seconds", found ? Optional(found->searchSeconds) : Optional());
  if (found)
    json.attributeArray("named", [&] {
      for (const SearchSummary::Named &each : found->named)
        json.object([&] {
          json.attribute("strategy", each.name);
          json.attribute("cost_seconds", each.costNanoseconds / 1e9);
          json.attribute("excess_bytes", std::max<int64_t>(each.excessBytes, 0));
        });
    });
}

void windlass::printJson(const PlanReport &report, llvm::raw_ostream &out) {
  using Optional = std::optional<double>;
  llvm::json::OStream json(out, 2);
  json.object([&] {
    json.attribute("model", report.model);
    json.attribute("cluster", toJson(report.cluster));
    json.attribute("ranks", report.ranks);
    if (report.pipeline)
      json.attributeObject("pipeline", [&] {
        json.attribute("stages", report.pipeline->stages);
        json.attribute("schedule", report.pipeline->schedule);
        json.attribute("largest_stage", report.pipeline->largestStage);
      });
    if (report.search && !report.search->triedStages.empty())
      json.attributeArray("tried_stages", [&] {
        for (auto [stages, seconds] : report.search->triedStages)
          json.object([&, stages = stages, seconds = seconds] {
            json.attribute("stages", stages);
            json.attribute("step_seconds", seconds);
          });
      });
    if (!report.offloads.empty()) {
      json.attribute("offload", plan::stringifyOffload(report.getOffload()));
      writeTries(json, "offload", report.offloads,
                 [](const OffloadTry &tried) { return plan::stringifyOffload(tried.offload); });
    }
    json.attribute("micro_batches", report.microBatches);
    json.attribute("merge", report.merge);
    if (!report.merges.empty())
      writeTries(json, "merge", report.merges, [](const MergeTry &tried) { return tried.merge; });
    json.attribute("average", report.averagesTokens ? "tokens" : "micro-batches");
    json.attribute("replicas", report.replicas);
    json.attributeObject("mesh", [&] {
      for (const auto &[axis, size] : report.mesh)
        json.attribute(axis, size);
    });
    writeMemory(json, report);
    writePrediction(json, report.prediction);
    json.attribute("simulated_seconds", report.prediction.seconds);
    double tokens = report.getTokensPerSecond();
    json.attribute("tokens_per_s", tokens > 0 ? Optional(tokens) : Optional());
    json.attribute("model_flops", report.work.flops);
    json.attribute("peak_share", report.getPeakShare());
    json.attribute("repeats", report.work.repeats);
    json.attribute("peak_bytes", report.memory.largestLiveSet);
    writeSearch(json, report.search);
  });
  out << "\n";
}
