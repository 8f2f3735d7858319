// windlass place-experts: where the experts of a mixture lie, for loads that are given.
#include "CommandSupport.h"

#include "windlass/Commands/Commands.h"
#include "windlass/Experts/CaseFile.h"
#include "windlass/Experts/Loads.h"
#include "windlass/Support/OutputFile.h"
#include "windlass/Support/StrictJson.h"
#include "windlass/Support/Words.h"

#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/raw_ostream.h"

#include <ctime>

using namespace windlass;
using namespace windlass::experts;
using llvm::formatv;

namespace {

struct PlaceFlags {
  std::string output, before, kind;
  double tolerance = 0.05;
  int64_t seed = 1;
  LoadSettings loads;
  Shape shape = {256, 288, 1, 1, 32};
  void declare(Flags &flags);
};

constexpr const char *kOfGenerate[] = {"layers", "experts", "replicas", "groups", "nodes",
                                       "gpus",   "seed",    "spread",   "step",   "drift"};

} // namespace

/// Adds a flag for an integer in [least, most] that the library takes as one of 32 bits.
static void addCount(Flags &flags, const std::string &name, const std::string &help, int32_t least, int32_t most,
                     int32_t &target) {
  flags.add(name, "N", help, [=, &target](llvm::StringRef text) -> std::string {
    int32_t value;
    if (text.getAsInteger(10, value) || value < least || value > most)
      return formatv("--{0} takes a whole number from {1} to {2}, not {3}", name, least, most, printable(text));
    target = value;
    return "";
  });
}

void PlaceFlags::declare(Flags &flags) {
  flags.addText("o", "FILE", "write the answer there, as --json prints it", output);
  flags.addText("from", "FILE",
                "where the experts lie now, an answer of this subcommand: move as few replicas as suffice", before);
  addNumber(flags, "tolerance",
            "with --from: the part by which the largest load may be above what is found where all may move (default "
            "0.05)",
            1000, [this](double value) { tolerance = value; });
  flags.addHeading("Loads at random, instead of FILE:");
  flags.addChoice("generate", getLoadKinds(), "the kind of the loads", kind);
  addCount(flags, "layers", "of them (default 1)", 1, 4096, loads.layers);
  addCount(flags, "experts", "of a layer (default 256)", 1, kMostExperts, shape.experts);
  addCount(flags, "replicas", "of all experts of a layer together (default 288)", 1, kMostReplicas, shape.replicas);
  addCount(flags, "groups", "of consecutive experts, each on one node (default 1)", 1, kMostExperts, shape.groups);
  addCount(flags, "nodes", "of them (default 1)", 1, kMostReplicas, shape.nodes);
  addCount(flags, "gpus", "of all nodes together (default 32)", 1, kMostReplicas, shape.gpus);
  flags.addInteger("seed", "of the random numbers (default 1)", seed, 0, int64_t(1) << 60);
  addNumber(flags, "spread",
            "log-normal: deviation of the logarithm; zipf: exponent; hot: the load of one expert over that of all "
            "others (default 1)",
            100, [this](double value) { loads.spread = value; });
  addCount(flags, "step", "the step to which the loads have drifted (default 0)", 0, 100'000, loads.step);
  addNumber(flags, "drift", "deviation of the change of each load's logarithm in a step (default 0.05)", 10,
            [this](double value) { loads.drift = value; });
}

/// Makes or reads the cases; returns an exit code.
static int findCases(Console &console, const Flags &flags, PlaceFlags &given, const std::vector<std::string> &words,
                     CaseFile &file) {
  if (given.kind.empty()) {
    if (words.empty())
      return console.fail(Code::usage, "place-experts needs a FILE of loads, or --generate KIND");
    for (const char *name : kOfGenerate)
      if (flags.isGiven(name))
        return console.fail(
            Code::usage,
            formatv("--{0} is for --generate, but loads are read from {1}", name, printable(words.front())).str());
    llvm::Expected<CaseFile> read = readCases(words.front(), /*readsPlacements=*/false);
    if (!read)
      return console.fail(Code::input, llvm::toString(read.takeError()));
    file = std::move(*read);
    return kDone;
  }
  if (!words.empty())
    return console.fail(Code::usage, "--generate makes loads, but they are to be read from " +
                                         printable(words.front()) + " too: leave one out");
  if (std::string error = checkShape(given.shape); !error.empty())
    return console.fail(Code::usage, error);
  given.loads.kind = static_cast<LoadKind>(llvm::find(getLoadKinds(), given.kind) - getLoadKinds().begin());
  given.loads.experts = given.shape.experts;
  given.loads.seed = given.seed;
  file.cases.push_back({given.shape, makeLoads(given.loads)});
  return kDone;
}

/// Reads the answer that replicas move from, which has to be one of the same cases; returns an exit code.
static int readBefore(Console &console, const std::string &path, const CaseFile &file, CaseFile &before) {
  llvm::Expected<CaseFile> read = readCases(path, /*readsPlacements=*/true);
  if (!read)
    return console.fail(Code::input, llvm::toString(read.takeError()));
  before = std::move(*read);
  auto fail = [&](const std::string &what, int64_t there, int64_t here) {
    return console.fail(Code::input, formatv("{0} has {1} {2}, but there are {3} now: place experts without --from",
                                             printable(path), there, what, here)
                                         .str());
  };
  if (before.cases.size() != file.cases.size())
    return fail("cases", before.cases.size(), file.cases.size());
  for (size_t at = 0; at < file.cases.size(); ++at) {
    const Case &was = before.cases[at], &is = file.cases[at];
    std::string suffix = file.isList ? formatv(" in case {0}", at).str() : "";
    if (was.loads.size() != is.loads.size())
      return fail("layers" + suffix, was.loads.size(), is.loads.size());
    for (auto [name, field] : {std::pair("experts", &Shape::experts),
                               {"replicas", &Shape::replicas},
                               {"groups", &Shape::groups},
                               {"nodes", &Shape::nodes},
                               {"gpus", &Shape::gpus}})
      if (was.shape.*field != is.shape.*field)
        return fail(name + suffix, was.shape.*field, is.shape.*field);
  }
  return kDone;
}

static void printCase(const Case &given, const CaseAnswer &answer) {
  llvm::raw_ostream &out = llvm::outs();
  const Shape &shape = given.shape;
  out << shape.experts << " experts, " << shape.replicas << " replicas, " << shape.gpus << " gpus";
  if (shape.getDomains() > 1)
    out << ", " << shape.groups << " groups on " << shape.nodes << " nodes";
  out << "\nlayer        largest           mean  mean/largest          bound";
  out << (answer.isReplanned ? "         before  moved\n" : "\n");
  int64_t moved = 0;
  for (size_t layer = 0; layer < answer.layers.size(); ++layer) {
    const ReplanAnswer &each = answer.layers[layer];
    double mean = computeMeanLoad(given, layer);
    out << formatv("{0,5} {1,14:f2} {2,14:f2} {3,13:f4} {4,14:f2}", layer, each.load, mean,
                   each.load > 0 ? mean / each.load : 1.0, each.bound);
    if (answer.isReplanned)
      out << formatv(" {0,14:f2} {1,6}", each.loadBefore, each.moved);
    out << (each.isOptimal() ? "  optimal\n" : "\n");
    moved += each.moved;
  }
  if (answer.isReplanned)
    out << "moved: " << moved << " of " << static_cast<int64_t>(answer.layers.size()) * shape.replicas << " replicas\n";
}

static CaseAnswer placeCase(Console &console, const Case &given, const std::vector<Placement> *before, double tolerance,
                            const PlaceLimits &limits, bool isVerbose) {
  CaseAnswer answer;
  answer.isReplanned = before != nullptr;
  std::clock_t begin = std::clock();
  for (size_t layer = 0; layer < given.loads.size(); ++layer) {
    if (before) {
      answer.layers.push_back(replanLayer(given.shape, given.loads[layer], (*before)[layer], tolerance, limits));
    } else {
      answer.layers.emplace_back();
      static_cast<LayerAnswer &>(answer.layers.back()) = placeLayer(given.shape, given.loads[layer], limits);
    }
  }
  if (isVerbose) {
    double seconds = double(std::clock() - begin) / CLOCKS_PER_SEC;
    console.say(formatv("{0} in {1:f3} s of processor time, {2:f2} ms a layer", countOf(given.loads.size(), "layer"),
                        seconds, 1e3 * seconds / given.loads.size())
                    .str());
  }
  return answer;
}

int windlass::runPlaceExperts(Console &console, const std::vector<std::string> &words) {
  Flags flags(
      "place-experts FILE.json | place-experts --generate KIND",
      "Places the experts of a mixture on GPUs, and replicas of those with much load, so that the largest load\n"
      "of a GPU is small. Prints it for each layer beside the mean and a lower bound. FILE holds one case, or\n"
      "a list of cases (docs/experts.md), such as two layers of three experts in four slots on two GPUs:\n"
      "  {\"weight\": [[9, 5, 2], [1, 7, 7]], \"replicas\": 4, \"groups\": 1, \"nodes\": 1, \"gpus\": 2}\n"
      "For example: windlass place-experts loads.json -o placement.json");
  PlaceFlags given;
  given.declare(flags);
  CommonFlags common;
  common.declare(flags);
  std::vector<std::string> positional;
  int code;
  if (!parseWords(console, flags, common, words, positional, 0, 1, code))
    return code;
  if (flags.isGiven("tolerance") && given.before.empty())
    return console.fail(Code::usage, "--tolerance is for --from, which is not given");
  CaseFile file, before;
  if ((code = findCases(console, flags, given, positional, file)) ||
      (!given.before.empty() && (code = readBefore(console, given.before, file, before))))
    return code;

  int64_t layers = 0;
  for (const Case &each : file.cases)
    layers += each.loads.size();
  PlaceLimits limits = shareLimits(layers);
  llvm::json::Array answers;
  for (size_t at = 0; at < file.cases.size(); ++at) {
    CaseAnswer answer = placeCase(console, file.cases[at], given.before.empty() ? nullptr : &before.placements[at],
                                  given.tolerance, limits, common.verbose);
    if (!common.json && !common.quiet)
      printCase(file.cases[at], answer);
    if (common.json || !given.output.empty())
      answers.push_back(toJson(file.cases[at], answer));
  }
  if (answers.empty())
    return kDone;
  std::string text;
  llvm::raw_string_ostream stream(text);
  // A line for each key.
  if (file.isList)
    printJson(stream, std::move(answers), 2);
  else
    printJson(stream, answers.front(), 1);
  stream << "\n";
  if (common.json)
    llvm::outs() << text;
  if (!given.output.empty())
    if (std::string error = writeFile(given.output, text); !error.empty())
      return console.fail(Code::output, error);
  return kDone;
}
