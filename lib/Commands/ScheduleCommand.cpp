// windlass schedule: the order of a pipeline's step, searched, published or from a file, with its time and a drawing.
#include "CommandSupport.h"

#include "windlass/Schedule/DrawPipeline.h"
#include "windlass/Schedule/NamedSchedules.h"
#include "windlass/Schedule/OrdersJson.h"
#include "windlass/Schedule/PipelineFile.h"
#include "windlass/Schedule/ScheduleSearch.h"
#include "windlass/Schedule/TimesFile.h"
#include "windlass/Support/OutputFile.h"
#include "windlass/Support/StrictJson.h"
#include "windlass/Support/Words.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/raw_ostream.h"

#include <cmath>
#include <ctime>

using namespace windlass;
using namespace windlass::schedule;
using llvm::formatv;

namespace {

struct ScheduleFlags {
  int64_t ranks = 0, microBatches = 0, chunks = 1, workLimit = SearchOptions().workLimit;
  std::string placement, name, times, file;
  bool isSplit = false;
  std::optional<double> cap, hop;
  std::vector<std::string> outputs;
  void declare(Flags &flags);
};

/// The flags that say which schedule is made; one that is read from a file is made already.
constexpr const char *kOfMaking[] = {"ranks", "micro-batches", "placement", "chunks", "split", "name", "work-limit"};

/// A schedule, how it was found, and what it is compared with.
struct Answer {
  TimedPipeline step;
  /// The problem that the schedule solves; its caps are in activations of chunks.
  ScheduleProblem problem;
  /// The name of a published schedule, or the path of a file; empty where the schedule was searched.
  std::string name, path;
  std::optional<double> cap;
  std::optional<int64_t> bound;
  /// The best published schedule of the placement within the cap, where there is one and it was looked for.
  llvm::StringRef published;
  int64_t publishedMakespan = 0;

  double getChunksPerRank() const {
    const Placement &placement = problem.placement;
    return static_cast<double>(placement.countChunks()) / static_cast<double>(placement.positions) /
           static_cast<double>(placement.chains.size());
  }
  bool isOptimal() const { return bound == step.timing.makespan; }
};

} // namespace

void ScheduleFlags::declare(Flags &flags) {
  std::vector<std::string> placements, names;
  for (PlacementKind kind : kPlacementKinds)
    placements.push_back(getName(kind).str());
  for (const NamedSchedule &each : getNamedSchedules())
    names.push_back(each.name.str());
  flags.addList(
      "o", "FILE",
      "write the answer there, as --json prints it; with .svg a drawing, with .txt all actions with sends and "
      "receives. May be given several times",
      outputs);
  flags.addHeading("What is scheduled:");
  flags.addInteger("ranks", "of the pipeline; a rank may stand for several that do the same", ranks, 1, kMaxChunks);
  flags.addInteger("micro-batches", "of a step; a bidirectional pipeline runs half of them in each direction",
                   microBatches, 1, kMaxMicroBatches);
  flags.addChoice("placement", placements, "how the chunks of the model lie on the ranks (default linear)", placement);
  flags.addInteger("chunks", "of each rank, in each direction where there are two (default 1)", chunks, 1, kMaxChunks);
  flags.addSwitch("split", "run input gradients and weight gradients apart", isSplit);
  flags.addChoice("name", names, "a published schedule, instead of a search (docs/schedules.md)", name);
  flags.addInteger("work-limit",
                   "most actions that the search times, on which the schedule depends (default 200000000)", workLimit,
                   1, int64_t(1) << 40);
  flags.addHeading("Limits and times:");
  addNumber(
      flags, "cap", "most activations that a rank keeps, in micro-batches (default: any number)", kMaxMicroBatches,
      [this](double value) { cap = value; }, /*takesZero=*/false);
  addNumber(flags, "hop", "time from one rank to another (default 0)", kMaxUnits,
            [this](double value) { hop = value; });
  flags.addText("times", "FILE.json",
                "times of forwards, input and weight gradients of chunks (default: 1 each for all chunks of a rank "
                "together)",
                times);
}

/// Finds the times in ticks, for the placement that is known now; returns an exit code.
static int findTimes(Console &console, const ScheduleFlags &given, Answer &answer) {
  const Placement &placement = answer.problem.placement;
  TimesInUnits times;
  if (given.times.empty()) {
    times = makeEqualTimes(placement);
  } else {
    llvm::Expected<TimesInUnits> read = readTimes(given.times);
    if (!read)
      return console.fail(Code::schedule, llvm::toString(read.takeError()));
    times = std::move(*read);
  }
  times.hop = given.hop.value_or(times.hop);
  llvm::Expected<ScaledTimes> scaled = scaleTimes(placement, times);
  if (!scaled)
    return console.fail(Code::schedule, printable(given.times) + ": " + llvm::toString(scaled.takeError()));
  answer.problem.times = answer.step.times = std::move(scaled->times);
  answer.step.ticksPerUnit = scaled->ticksPerUnit;
  return kDone;
}

/// Sets the caps of the problem, which are in activations of chunks.
static void setCaps(Answer &answer) {
  // A cap of 1.2 micro-batches is one of 6 chunks where a micro-batch has 5.
  if (answer.cap)
    answer.problem.caps.assign(answer.problem.placement.positions,
                               static_cast<int64_t>(std::floor(*answer.cap * answer.getChunksPerRank() + 1e-9)));
}

/// Makes the published schedule; returns an exit code.
static int makeNamedAnswer(Console &console, const ScheduleFlags &given, const NamedSchedule &named, Answer &answer) {
  llvm::Expected<Pipeline> pipeline = named.make(given.ranks, given.chunks, answer.problem.microBatches);
  if (!pipeline)
    return console.fail(Code::usage, llvm::toString(pipeline.takeError()));
  answer.step.pipeline = std::move(*pipeline);
  if (answer.problem.caps.empty())
    return kDone;
  if (llvm::Error error = checkCaps(answer.step.pipeline, answer.problem.caps)) {
    PipelineTiming timing = llvm::cantFail(timePipeline(answer.step.pipeline, answer.step.times));
    double least = static_cast<double>(*llvm::max_element(timing.peaks)) / answer.getChunksPerRank();
    return console.fail(Code::schedule_cap, formatv("{0}: {1}; {0} needs --cap {2}, a search may need less", named.name,
                                                    llvm::toString(std::move(error)), printTime(least))
                                                .str());
  }
  return kDone;
}

/// Searches the schedule, and the best published one beside it; returns an exit code.
static int searchAnswer(Console &console, const ScheduleFlags &given, Answer &answer) {
  const ScheduleProblem &problem = answer.problem;
  if (!problem.caps.empty())
    for (auto [rank, cap, least] : llvm::enumerate(problem.caps, getLeastCaps(problem.placement)))
      if (cap < least)
        return console.fail(Code::schedule_cap,
                            formatv("--cap {0} is {1} of rank {2}, but one micro-batch alone has {3}; the least cap is "
                                    "--cap {4}",
                                    printTime(*answer.cap), countOf(cap, "chunk"), rank, least,
                                    printTime(double(least) / answer.getChunksPerRank()))
                                .str());
  llvm::Expected<SearchedSchedule> found = searchSchedule(problem, {given.workLimit});
  if (!found)
    return console.fail(Code::usage, llvm::toString(found.takeError()));
  answer.step.pipeline = std::move(found->pipeline);
  answer.bound = found->lowerBound;
  for (const NamedSchedule *each : findNamedSchedules(problem.placement, problem.isSplit)) {
    llvm::Expected<Pipeline> pipeline = each->make(given.ranks, given.chunks, problem.microBatches);
    if (!pipeline) {
      llvm::consumeError(pipeline.takeError());
      continue;
    }
    if (llvm::Error error = problem.caps.empty() ? llvm::Error::success() : checkCaps(*pipeline, problem.caps)) {
      llvm::consumeError(std::move(error));
      continue;
    }
    int64_t makespan = llvm::cantFail(timePipeline(*pipeline, problem.times)).makespan;
    if (!answer.published.empty() && makespan >= answer.publishedMakespan)
      continue;
    answer.published = each->name;
    answer.publishedMakespan = makespan;
  }
  return kDone;
}

/// Makes or searches the schedule that the flags describe; returns an exit code.
static int makeAnswer(Console &console, const Flags &flags, ScheduleFlags &given, Answer &answer) {
  for (const char *name : {"ranks", "micro-batches"})
    if (!flags.isGiven(name))
      return console.fail(Code::usage, formatv("schedule needs --{0}, or the FILE of a schedule", name).str());
  const NamedSchedule *named = given.name.empty() ? nullptr : findNamedSchedule(given.name);
  PlacementKind kind = findPlacementKind(given.placement).value_or(PlacementKind::Linear);
  if (named) {
    if (!given.placement.empty() && kind != named->placement)
      return console.fail(Code::usage, formatv("{0} lies on a {1} placement, not on a {2} one: leave --placement out",
                                               named->name, getName(named->placement), given.placement)
                                           .str());
    if (given.isSplit && !named->isSplit)
      return console.fail(Code::usage,
                          formatv("--split contradicts --name {0}, whose backwards are whole", named->name).str());
    if (flags.isGiven("work-limit"))
      return console.fail(Code::usage, "--work-limit is for a search, but --name makes a published schedule");
    if (!flags.isGiven("chunks"))
      given.chunks = named->chunksPerPosition;
    if (!named->hasChunks(given.chunks))
      return console.fail(Code::usage,
                          formatv("{0} has {1} chunks of each rank{2}, not --chunks {3}", named->name,
                                  named->chunksPerPosition, named->takesMoreChunks ? " or more" : "", given.chunks)
                              .str());
    kind = named->placement;
    given.isSplit = named->isSplit;
    answer.name = named->name.str();
  }
  int64_t directions = kind == PlacementKind::Bidirectional ? 2 : 1;
  if (given.microBatches % directions != 0)
    return console.fail(Code::usage,
                        formatv("--micro-batches {0} cannot be halved for the two directions of a bidirectional "
                                "placement: give an even number",
                                given.microBatches)
                            .str());
  if (given.chunks > kMaxChunks / directions / given.ranks)
    return console.fail(Code::usage, formatv("--ranks {0} with --chunks {1} are more chunks than the {2} that a model "
                                             "may have",
                                             given.ranks, given.chunks, kMaxChunks / directions)
                                         .str());
  answer.problem.placement = makePlacement(kind, given.ranks, given.chunks);
  answer.problem.microBatches = given.microBatches / directions;
  answer.problem.isSplit = given.isSplit;
  answer.cap = given.cap;
  setCaps(answer);
  if (int code = findTimes(console, given, answer))
    return code;
  return named ? makeNamedAnswer(console, given, *named, answer) : searchAnswer(console, given, answer);
}

/// Reads the schedule of a file; returns an exit code.
static int readAnswer(Console &console, const Flags &flags, const ScheduleFlags &given, Answer &answer) {
  for (const char *name : kOfMaking)
    if (flags.isGiven(name))
      return console.fail(
          Code::usage,
          formatv("--{0} is for a schedule that is made, but one is read from {1}", name, printable(given.file)).str());
  llvm::Expected<PipelineFile> file = readPipelineFile(given.file);
  if (!file)
    return console.fail(Code::schedule, llvm::toString(file.takeError()));
  answer.path = given.file;
  answer.step.pipeline = std::move(file->pipeline);
  answer.problem.placement = answer.step.pipeline.placement;
  answer.problem.microBatches = 0;
  for (const schedule::Schedule &each : answer.step.pipeline.positions)
    for (const Action &action : each.actions) {
      answer.problem.microBatches = std::max(answer.problem.microBatches, action.microBatch + 1);
      answer.problem.isSplit |= action.kind == ActionKind::InputGradient;
    }
  answer.cap = given.cap ? given.cap : file->cap;
  setCaps(answer);
  if (!answer.problem.caps.empty())
    if (llvm::Error error = checkCaps(answer.step.pipeline, answer.problem.caps))
      return console.fail(Code::schedule, printable(given.file) + ": " + llvm::toString(std::move(error)));
  return findTimes(console, given, answer);
}

static std::string describe(const Answer &answer) {
  const Placement &placement = answer.problem.placement;
  int64_t chains = static_cast<int64_t>(placement.chains.size());
  std::string text = answer.name;
  if (!answer.path.empty())
    text = printable(answer.path);
  if (text.empty())
    text = "searched schedule";
  text += ": " + countOf(placement.positions, "rank") + ", " + countOf(placement.countChunks(), "chunk") + ", " +
          countOf(answer.problem.microBatches * chains, "micro-batch", "micro-batches") +
          (answer.problem.isSplit ? ", split backwards" : "");
  if (answer.cap)
    text += formatv(", cap {0}", printTime(*answer.cap)).str();
  if (answer.step.times.hop > 0)
    text += ", hop " + printTime(answer.step.inUnits(answer.step.times.hop));
  return text;
}

static void printAnswer(const Answer &answer) {
  const TimedPipeline &step = answer.step;
  llvm::raw_ostream &out = llvm::outs();
  out << describe(answer) << "\nmakespan " << printTime(step.inUnits(step.timing.makespan)) << ", lower bound ";
  if (answer.bound)
    out << printTime(step.inUnits(*answer.bound)) << (answer.isOptimal() ? " (optimal)" : "");
  else
    out << "unknown";
  out << formatv(", idle {0:f1} %\n", 100 * step.timing.getIdleShare());
  if (!answer.published.empty())
    out << formatv("best published: {0}, {1} ({2:f2} % longer)\n", answer.published,
                   printTime(step.inUnits(answer.publishedMakespan)),
                   100 * (double(answer.publishedMakespan) / double(std::max<int64_t>(1, step.timing.makespan)) - 1));
  out << "peak activations, in micro-batches:";
  for (int64_t peak : llvm::ArrayRef(step.timing.peaks).take_front(kMaxDrawnPositions))
    out << " " << printTime(double(peak) / answer.getChunksPerRank());
  out << (step.timing.peaks.size() > size_t(kMaxDrawnPositions) ? " ...\n\n" : "\n\n");
  constexpr int64_t kColumns = 120;
  out << drawText(step, kColumns);
}

static llvm::json::Object describeAsJson(const Answer &answer) {
  const TimedPipeline &step = answer.step;
  const Placement &placement = answer.problem.placement;
  llvm::json::Array peaks, busy;
  for (int64_t peak : step.timing.peaks)
    peaks.push_back(double(peak) / answer.getChunksPerRank());
  for (int64_t each : step.timing.busy)
    busy.push_back(step.inUnits(each));
  llvm::json::Object object{
      {"ranks", placement.positions},
      {"micro_batches", answer.problem.microBatches * static_cast<int64_t>(placement.chains.size())},
      {"chunks", placement.countChunks()},
      {"split", answer.problem.isSplit},
      {"hop", step.inUnits(step.times.hop)},
      {"makespan", step.inUnits(step.timing.makespan)},
      {"idle", step.timing.getIdleShare()},
      {"peak", std::move(peaks)},
      {"busy", std::move(busy)},
      {"chains", llvm::json::Array(placement.chains)},
      {"orders", writeOrders(step.pipeline)}};
  object["cap"] = answer.cap ? llvm::json::Value(*answer.cap) : llvm::json::Value(nullptr);
  object["bound"] = answer.bound ? llvm::json::Value(step.inUnits(*answer.bound)) : llvm::json::Value(nullptr);
  object["optimal"] = answer.isOptimal();
  if (!answer.name.empty())
    object["name"] = answer.name;
  if (answer.name.empty() && answer.path.empty())
    object["published"] = nullptr;
  if (!answer.published.empty())
    object["published"] =
        llvm::json::Object{{"name", answer.published}, {"makespan", step.inUnits(answer.publishedMakespan)}};
  return object;
}

/// Writes the files of -o; returns an exit code.
static int writeOutputs(Console &console, const Answer &answer, const std::string &json,
                        const std::vector<std::string> &paths) {
  for (const std::string &path : paths) {
    std::string text = json;
    if (llvm::StringRef(path).ends_with(".txt"))
      text = printPipeline(answer.step.pipeline);
    if (llvm::StringRef(path).ends_with(".svg")) {
      llvm::Expected<std::string> drawing = drawSvg(answer.step, describe(answer));
      if (!drawing)
        return console.fail(Code::schedule, "the schedule " + llvm::toString(drawing.takeError()));
      text = std::move(*drawing);
    }
    if (std::string error = writeFile(path, text); !error.empty())
      return console.fail(Code::output, error);
  }
  return kDone;
}

int windlass::runSchedule(Console &console, const std::vector<std::string> &words) {
  Flags flags("schedule --ranks P --micro-batches M | schedule FILE",
              "Searches the order of forwards and backwards in which a pipeline's step takes least time, or makes a\n"
              "published schedule (--name), or checks and times the one of FILE: orders as JSON, as --json prints\n"
              "them, or all actions as text, as -o FILE.txt writes them. Prints its time beside a lower bound, how\n"
              "many activations each rank keeps, and a drawing.\n"
              "For example: windlass schedule --ranks 4 --micro-batches 8 --split --cap 4 --hop 0.1 -o schedule.svg");
  ScheduleFlags given;
  given.declare(flags);
  CommonFlags common;
  common.declare(flags);
  std::vector<std::string> positional;
  int code;
  if (!parseWords(console, flags, common, words, positional, 0, 1, code))
    return code;
  std::clock_t begin = std::clock();
  Answer answer;
  if (!positional.empty())
    given.file = positional.front();
  if ((code =
           positional.empty() ? makeAnswer(console, flags, given, answer) : readAnswer(console, flags, given, answer)))
    return code;
  answer.step.timing = llvm::cantFail(timePipeline(answer.step.pipeline, answer.step.times));
  // The bound is one of schedules that run micro-batches in order; a step that is too large to be searched has none.
  if (!answer.bound && runsInOrder(answer.step.pipeline)) {
    if (llvm::Expected<int64_t> bound = boundSchedule(answer.problem))
      answer.bound = *bound;
    else
      llvm::consumeError(bound.takeError());
  }
  if (common.verbose)
    console.say(formatv("{0:f2} s of processor time", double(std::clock() - begin) / CLOCKS_PER_SEC).str());

  std::string json;
  llvm::raw_string_ostream stream(json);
  printJson(stream, describeAsJson(answer), 1);
  stream << "\n";
  if ((code = writeOutputs(console, answer, json, given.outputs)))
    return code;
  if (common.json)
    llvm::outs() << json;
  else if (!common.quiet)
    printAnswer(answer);
  return kDone;
}
