#include "CommandSupport.h"

#include "windlass/Pipeline/Claims.h"

#include "windlass/Dialect/Plan/Transforms/NamedStrategies.h"
#include "windlass/Dialect/Plan/Transforms/PipelineStep.h"
#include "windlass/Dialect/Train/IR/Optimizers.h"
#include "windlass/Dialect/Train/Transforms/MergeMicroBatches.h"
#include "windlass/InitAllDialects.h"
#include "windlass/Schedule/NamedSchedules.h"
#include "windlass/Schedule/PipelineFile.h"
#include "windlass/Support/Glob.h"
#include "windlass/Support/InputFile.h"
#include "windlass/Support/Words.h"

#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/raw_ostream.h"

#include <unistd.h>

#include <optional>

using namespace mlir;
using namespace windlass;

std::unique_ptr<MLIRContext> windlass::makeContext(Console &console, bool verbose) {
  DialectRegistry registry;
  registerAllDialects(registry);
  auto context = std::make_unique<MLIRContext>(registry, MLIRContext::Threading::DISABLED);
  context->loadAllAvailableDialects();
  console.listenTo(*context, verbose);
  return context;
}

CompilationEvents windlass::printEvents(Console &console, Talk talk) {
  CompilationEvents events;
  events.warning = [&console](llvm::StringRef line) { console.say(line); };
  events.modelRead = [&console, talk](const OnnxToTrainReport &report, ModuleOp module) {
    for (const UnsupportedOp &op : report.unsupported)
      llvm::errs() << "windlass: unsupported: " << op.name << " x" << op.count << ", first at '" << op.first << "'"
                   << (op.reason.empty() ? "" : ": " + op.reason) << "\n";
    if (!module || talk == Talk::none)
      return;
    if (std::string altered = report.describeAlterations(); !altered.empty())
      console.say("trains another model than was exported: " + altered);
    if (talk == Talk::all) {
      console.say(describeTraining(module));
      for (const ParameterGuess &guess : report.guesses)
        console.say("guess: " + printable(guess.name) + (guess.trains ? " trains: " : " does not train: ") +
                    guess.reason);
    }
    for (const std::string &warning : report.warnings)
      console.say("warning: " + warning);
  };
  return events;
}

BuildEvents windlass::printEvents(Console &console, const CommonFlags &common) {
  BuildEvents events;
  events.warning = [&console](llvm::StringRef line) { console.say(line); };
  events.log = [](llvm::StringRef text) { llvm::errs() << text; };
  if (common.verbose)
    events.note = [](llvm::StringRef line) { llvm::errs() << line << "\n"; };
  if (common.quiet)
    return events;
  // A terminal shows one line that is renewed; elsewhere a line is printed when there is something new to say.
  bool isRenewed = isatty(STDERR_FILENO) == 1;
  events.interval = std::chrono::milliseconds(isRenewed ? 200 : 5000);
  events.progress = [isRenewed, shown = std::string()](llvm::StringRef line) mutable {
    if (line.empty()) {
      llvm::errs() << (isRenewed ? "\r\033[K" : "");
      shown.clear();
    } else if (isRenewed) {
      llvm::errs() << "\r\033[Kwindlass: " << line;
    } else if (line != shown) {
      // A build that stands still prints nothing new.
      shown = line.str();
      llvm::errs() << "windlass: " << line << "\n";
    }
  };
  return events;
}

void CommonFlags::declare(Flags &flags) {
  flags.addHeading("Output:");
  flags.addSwitch("json", "the result as JSON on standard output", json);
  flags.addSwitch("v", "say more", verbose);
  flags.addSwitch("q", "say only errors", quiet);
  flags.addSwitch("help", "this text", help);
}

bool windlass::parseWords(Console &console, Flags &flags, CommonFlags &common, const std::vector<std::string> &words,
                          std::vector<std::string> &positional, size_t least, size_t most, int &code) {
  if (llvm::is_contained(words, "--help") || llvm::is_contained(words, "-h")) {
    llvm::outs() << flags.getHelp();
    code = kDone;
    return false;
  }
  if (std::string error = flags.parse(words, positional, least, most); !error.empty()) {
    code = console.fail(Code::usage, error);
    return false;
  }
  return true;
}

void windlass::addNumber(Flags &flags, const std::string &name, const std::string &help, int64_t most,
                         std::function<void(double)> set, bool takesZero) {
  flags.add(name, "X", help, [=](llvm::StringRef text) -> std::string {
    double value;
    if (text.getAsDouble(value) || !(value >= 0 && value <= double(most)) || (value == 0 && !takesZero))
      return llvm::formatv("--{0} takes a number {1} {2}, not {3}", name,
                           takesZero ? "from 0 to" : "above 0 and at most", most, printable(text));
    set(value);
    return "";
  });
}

void CompileFlags::declareModel(Flags &flags) {
  flags.addHeading("Model:");
  flags.add("dim", "NAME=SIZE", "size of a symbolic dimension", [this](llvm::StringRef text) -> std::string {
    auto [name, value] = text.split('=');
    int64_t size;
    if (name.empty() || value.getAsInteger(10, size) || size < 1)
      return "--dim takes NAME=SIZE with a size of at least 1, not '" + text.str() + "'";
    settings.dims[name.str()] = size;
    return "";
  });
  flags.addText("loss", "NAME", "the output to train on (default: the scalar one)", settings.loss);
  flags.addList("train", "GLOB", "initializers that train, whatever the file says about them", settings.train);
  flags.addList("freeze", "GLOB", "parameters that do not train", settings.freeze);
  flags.addSwitch("accept-altered-parameters", "accept a file whose model differs from the exported one, and say how",
                  settings.acceptAltered);
  flags.addSwitch("strict", "warnings about the model are errors", settings.strict);
}

void CompileFlags::declareSettings(Flags &flags) {
  declareModel(flags);
  flags.addHeading("Compiled in:");
  std::vector<std::string> optimizers;
  for (const train::Optimizer &each : train::getOptimizers())
    optimizers.push_back(each.name.str());
  flags.addChoice("optimizer", optimizers, "(default adamw)", settings.optimizer);
  flags.addChoice(
      "precision", {"f32", "tf32", "bf16", "f16"},
      "precision of values and arithmetic; weights and state stay f32; tf32: only products round (default f32)",
      settings.precision);
  flags.addInteger("micro-batches", "micro-batches of a step, over all ranks: G (default 1)", settings.microBatches, 1,
                   1 << 20);
  flags.add(
      "merge", "K|auto",
      "micro-batches that a rank computes at once, each with a loss of its own; auto doubles their number as long "
      "as that makes the planned step shorter (default 1)",
      [this](llvm::StringRef text) -> std::string {
        settings.merge = 1;
        settings.searchesMerge = text == "auto";
        const bool isNumber =
            !text.getAsInteger(10, settings.merge) && settings.merge >= 1 && settings.merge <= train::kMostMerged;
        return settings.searchesMerge || isNumber
                   ? ""
                   : "--merge takes a number from 1 to " + std::to_string(train::kMostMerged) + " or auto, not " +
                         printable(text);
      });
  flags.addSwitch("bf16-gradients",
                  "gradients travel between ranks, and to the host, in bf16; they are made and added up in f32",
                  settings.bf16Gradients);
  flags.addChoice(
      "average", {"micro-batches", "tokens"},
      "the mean that a step's loss is: of the losses of its micro-batches, each a mean of its own, or of all "
      "labels that are not ignored (default micro-batches)",
      settings.average);
  flags.addSwitch("clip", "compile global-norm clipping in (--clip-norm of train implies it)", settings.clip);
  flags.addSwitch("ema", "keep an exponential moving average of the weights (--ema-decay of train)", settings.ema);
  for (auto [name, what, patterns] : {std::tuple("lr-scale", "learning rate", &settings.ratePatterns),
                                      {"decay-scale", "weight decay", &settings.decayPatterns}})
    flags.add(name, "GLOB=X",
              std::string("these parameters have X times the ") + what + "; the first pattern that matches counts",
              [name = name, patterns = patterns](llvm::StringRef text) -> std::string {
                if (!train::parseScale(text))
                  return llvm::formatv("--{0} takes GLOB=X with a number X above 0 and at most {1}, not {2}", name,
                                       train::kMostScale, printable(text));
                patterns->push_back(text.str());
                return "";
              });
  flags.addList("no-decay", "GLOB", "parameters without weight decay, besides those of rank 1 and 0", settings.noDecay);
}

/// Reads NAME[=V], or takes the path of a file; returns what is wrong with it.
static std::string readSchedule(llvm::StringRef text, planner::PipelineChoice &pipeline, std::string &path) {
  auto [name, count] = text.split('=');
  const schedule::NamedSchedule *named = schedule::findNamedSchedule(name);
  path = named ? "" : text.str();
  if (!named)
    return llvm::sys::fs::exists(text) ? ""
                                       : "--schedule takes the name of a published schedule, such as 1f1b or "
                                         "interleaved, or a file as 'windlass schedule -o FILE' writes one, not " +
                                             printable(text);
  pipeline.schedule = name.str();
  pipeline.chunksPerPosition = named->chunksPerPosition;
  if (!count.empty() && count.getAsInteger(10, pipeline.chunksPerPosition))
    return "--schedule takes NAME=V with a number of chunks V, not " + printable(text);
  if (!named->hasChunks(pipeline.chunksPerPosition) || pipeline.chunksPerPosition > schedule::kMaxChunks)
    return llvm::formatv("--schedule {0} has {1} of each stage{2}, not {3}", name,
                         countOf(named->chunksPerPosition, "chunk"), named->takesMoreChunks ? " or more" : "",
                         pipeline.chunksPerPosition)
        .str();
  return "";
}

void CompileFlags::declarePlan(Flags &flags) {
  flags.addHeading("Plan:");
  flags.addText("cluster", "C", "the devices: a preset such as cpu:2, h200:8, a100-40g:4x8, or a file", cluster);
  flags.addText("strategy", "NAME[=K][*NAME[=K]]",
                plan::describeNamedStrategies() + ", each on K ranks ('windlass explain --strategies' says what they "
                                                  "do); or auto, which searches one for every "
                                                  "operator (default auto)",
                choice.strategy);
  flags.add("stages", "S",
            "of a pipeline, which share the devices evenly; the model is cut where the longest stage is shortest, "
            "and --strategy plans the ranks of each; or auto, which searches their number too (default 1)",
            [this](llvm::StringRef text) -> std::string {
              choice.searchesStages = text == "auto";
              choice.pipeline.positions = 1;
              if (choice.searchesStages ||
                  (!text.getAsInteger(10, choice.pipeline.positions) && choice.pipeline.positions >= 1 &&
                   choice.pipeline.positions <= schedule::kMaxChunks))
                return "";
              return "--stages takes a number from 1 to " + std::to_string(schedule::kMaxChunks) + " or auto, not " +
                     printable(text);
            });
  flags.add("schedule", "NAME[=V]|FILE",
            "the published schedule by which stages run, each with V chunks of the model (default 1f1b), or the file "
            "of another one, which says the stages too (see docs/schedules.md)",
            [this](llvm::StringRef text) { return readSchedule(text, choice.pipeline, scheduleFile); });
  flags.add(
      "offload", "none|some|optimizer|gradients|weights|disk|auto",
      "what the host's memory holds from step to step: the optimizer's state with the master copies of the "
      "weights, which the host updates, of all parameters (some: of those that the search chooses); with gradients the "
      "accumulated gradients too; with weights all of it, and each pass copies weights to the device; with disk "
      "gradients and weights, while state and master copies are on the host's disk; auto takes what gives the shortest "
      "step (default none)",
      [this](llvm::StringRef text) -> std::string {
        std::optional<plan::Offload> offload = plan::parseOffload(text);
        choice.offload = offload.value_or(plan::Offload::none);
        choice.searchesOffload = text == "auto";
        return offload || choice.searchesOffload
                   ? ""
                   : "--offload takes " + plan::listOffloads() + " or auto, not " + printable(text);
      });
  flags.addList(
      "pin", "PATTERN=VALUE",
      "fixes a strategy (n0:model, whole) or layouts ([8:batch, 64]) of the operators that a glob matches, or a "
      "copy of parameters (compute:, gradient: or master:[..]); see docs/plans.md",
      choice.pins);
  flags.addText("onnx-pins", "CONFIGURATION", "the model's own sharding annotations of that configuration are pins too",
                choice.onnxPins);
  flags.add("memory-limit", "SIZE", "per device: bytes, KiB, MiB or GiB (default: what the device has)",
            [this](llvm::StringRef text) -> std::string {
              return parseBytes(text, choice.memoryLimit)
                         ? ""
                         : "--memory-limit takes a size such as 512MiB, not '" + text.str() + "'";
            });
  declareReserve(flags);
  flags.addText("costs", "profile.json",
                "measured times, of 'windlass profile' (default: the analytic model of the cluster)", costs);
  declareSettings(flags);
}

void CompileFlags::declareReserve(Flags &flags) {
  flags.add(
      "reserve", "SIZE",
      "what a rank takes of a device's memory besides the plan's arena: bytes, KiB, MiB or GiB (default: what the "
      "back end declares)",
      [this](llvm::StringRef text) -> std::string {
        int64_t bytes;
        if (!parseBytes(text, bytes, /*least=*/0))
          return "--reserve takes a size such as 1.5GiB, or 0, not '" + text.str() + "'";
        reserve = bytes;
        return "";
      });
}

int windlass::resolveCosts(Console &console, CompileFlags &flags) {
  if (flags.costs.empty())
    return kDone;
  auto text = readInputFile(flags.costs, Profile::kMostBytes, "profile");
  if (!text)
    return console.fail(Code::profile, llvm::toString(text.takeError()));
  llvm::Expected<Profile> read = readProfile((*text)->getBuffer());
  if (!read)
    return console.fail(Code::profile, printable(flags.costs) + ": " + llvm::toString(read.takeError()));
  if (std::string mismatch = findMismatch(*read, flags.choice.cluster); !mismatch.empty())
    return console.fail(Code::profile, "the profile " + printable(flags.costs) + " says nothing about these devices: " +
                                           mismatch + "; measure there with 'windlass profile', or leave --costs out");
  flags.choice.profile = std::make_shared<Profile>(std::move(*read));
  return kDone;
}

int windlass::resolveCluster(Console &console, CompileFlags &flags) {
  std::string text = flags.cluster;
  if (text.empty())
    text = "cpu:" + std::to_string(std::max<int64_t>(flags.ranks, 1));
  llvm::Expected<Cluster> cluster = findCluster(text);
  if (!cluster)
    return console.fail(Code::cluster, llvm::toString(cluster.takeError()));
  if (flags.ranks > 0 && flags.ranks != cluster->getDevices())
    return console.fail(Code::contradiction, "-n is " + std::to_string(flags.ranks) + " but --cluster " +
                                                 flags.cluster + " has " + countOf(cluster->getDevices(), "device") +
                                                 "; give one of them");
  flags.choice.cluster = *cluster;
  flags.choice.cluster.reserveBytes = flags.reserve;
  return kDone;
}

/// Fails where --reserve is not what a plan was made with.
static int checkReserve(Console &console, const CompileFlags &flags, const plan::PlanFile &plan) {
  const std::optional<int64_t> &planned = plan.cluster.reserveBytes;
  if (!flags.reserve || flags.reserve == planned)
    return kDone;
  return console.fail(Code::contradiction,
                      "--reserve is " + exactSizeText(*flags.reserve) + " but the plan was made for " +
                          (planned ? exactSizeText(*planned) : "the reserve that its back end declares") +
                          "; leave --reserve out or make another plan");
}

/// Takes settings that the user did not give from the plan. Those that the user gave stay, and are compared with the
/// plan later.
static int takeSettings(Console &console, CompileFlags &flags, const Flags &given, const plan::PlanFile &plan) {
  CompileSettings &settings = flags.settings;
  if (!given.isGiven("dim"))
    settings.dims = plan.settings.dims;
  if (!given.isGiven("loss"))
    settings.loss = plan.settings.loss;
  if (!given.isGiven("optimizer"))
    settings.optimizer = plan.settings.optimizer;
  if (!given.isGiven("precision"))
    settings.precision = plan.settings.precision;
  if (!given.isGiven("micro-batches"))
    settings.microBatches = plan.settings.microBatches;
  if (settings.searchesMerge)
    return console.fail(Code::contradiction, "--merge is auto but the plan merges " +
                                                 countOf(plan.settings.merge, "micro-batch", "micro-batches") +
                                                 "; leave --merge out or make another plan");
  if (!given.isGiven("merge"))
    settings.merge = plan.settings.merge;
  if (!given.isGiven("average"))
    settings.average = plan.settings.average;
  settings.clip |= plan.settings.clip;
  settings.ema |= plan.settings.ema;
  settings.bf16Gradients |= plan.settings.bf16Gradients;
  if (!given.isGiven("freeze") && !given.isGiven("train"))
    settings.trainable = plan.settings.trainable;
  if (!given.isGiven("no-decay"))
    for (const std::string &name : plan.settings.noDecay)
      settings.noDecay.push_back(escapeGlob(name));
  auto takeScales = [&](const char *flag, const std::map<std::string, double> &scales,
                        std::vector<std::string> &patterns) {
    if (!given.isGiven(flag))
      for (const auto &[name, scale] : scales)
        patterns.push_back(llvm::formatv("{0}={1:e16}", escapeGlob(name), scale));
  };
  takeScales("lr-scale", plan.settings.rateScales, settings.ratePatterns);
  takeScales("decay-scale", plan.settings.decayScales, settings.decayPatterns);
  if (given.isGiven("pin") && plan::sortPins(flags.choice.pins) != plan.settings.pins)
    return console.fail(Code::contradiction,
                        "--pin " + printable(flags.choice.pins.front()) +
                            (plan.settings.pins.empty() ? std::string(", but the plan was made without pins")
                                                        : ", but the plan was made with other pins, such as " +
                                                              printable(plan.settings.pins.front())) +
                            "; leave --pin out or make another plan");
  for (llvm::StringRef flag : {"strategy", "offload", "onnx-pins", "stages", "schedule"})
    if (given.isGiven(flag))
      return console.fail(Code::contradiction,
                          "--" + flag.str() + " is for making a plan, but --plan gives one; leave one of them out");
  int64_t ranks = plan.cluster.getDevices();
  if (flags.ranks > 0 && flags.ranks != ranks)
    return console.fail(Code::contradiction, "-n is " + std::to_string(flags.ranks) + " but the plan is for " +
                                                 countOf(ranks, "rank") + "; leave -n out or make another plan");
  if (plan.memoryLimit > 0 && given.isGiven("memory-limit") && flags.choice.memoryLimit != plan.memoryLimit)
    return console.fail(Code::contradiction, "--memory-limit is " + exactSizeText(flags.choice.memoryLimit) +
                                                 " but the plan was made for " + exactSizeText(plan.memoryLimit) +
                                                 "; leave --memory-limit out or make another plan");
  if (plan.memoryLimit > 0)
    flags.choice.memoryLimit = plan.memoryLimit;
  if (int code = checkReserve(console, flags, plan))
    return code;
  if (!flags.cluster.empty()) {
    llvm::Expected<Cluster> cluster = findCluster(flags.cluster);
    if (!cluster)
      return console.fail(Code::cluster, llvm::toString(cluster.takeError()));
    if (std::string difference = findDifference(plan.cluster, *cluster); !difference.empty())
      return console.fail(Code::contradiction, "the plan is not for --cluster " + printable(flags.cluster) +
                                                   ": its cluster's " + difference +
                                                   "; leave --cluster out or make another plan");
  }
  return kDone;
}

int windlass::readPlanWithClaims(Console &console, llvm::StringRef path, plan::PlanFile &plan) {
  auto text = readInputFile(path, plan::PlanFile::kMostBytes, "plan");
  if (!text)
    return console.fail(Code::plan_file, llvm::toString(text.takeError()));
  llvm::Expected<plan::PlanFile> read = plan::readPlanFile((*text)->getBuffer());
  if (!read)
    return console.fail(Code::plan_file, printable(path) + ": " + llvm::toString(read.takeError()));
  plan = std::move(*read);
  return kDone;
}

int windlass::readPlan(Console &console, llvm::StringRef path, plan::PlanFile &plan) {
  if (int code = readPlanWithClaims(console, path, plan))
    return code;
  if (plan.claims && plan.claims->planHash != hashOfPlan(plan)) {
    console.say("what " + printable(path) +
                " claims is dropped: the plan was edited since, or another windlass made it");
    plan.claims.reset();
  }
  return kDone;
}

/// Reads the schedule of --schedule where that is a file; returns an exit code.
static int resolveSchedule(Console &console, CompileFlags &flags, const Flags &given) {
  if (flags.scheduleFile.empty())
    return kDone;
  llvm::Expected<schedule::PipelineFile> file = schedule::readPipelineFile(flags.scheduleFile);
  if (!file)
    return console.fail(Code::schedule, llvm::toString(file.takeError()));
  planner::PipelineChoice &pipeline = flags.choice.pipeline;
  int64_t positions = file->pipeline.placement.positions;
  if (positions < 2)
    return console.fail(Code::schedule, printable(flags.scheduleFile) + " has one rank, but a pipeline has 2 or more");
  if (given.isGiven("stages") && (flags.choice.searchesStages || pipeline.positions != positions))
    return console.fail(Code::contradiction,
                        "--stages is " + (flags.choice.searchesStages ? "auto" : std::to_string(pipeline.positions)) +
                            " but the schedule " + printable(flags.scheduleFile) + " has " +
                            countOf(positions, "rank") + "; leave --stages out");
  pipeline.positions = positions;
  pipeline.schedule = plan::kOwnSchedule;
  pipeline.own = std::make_shared<const schedule::Pipeline>(std::move(file->pipeline));
  return kDone;
}

/// Imports a model file and lowers it to L2; returns an exit code.
static int build(Console &console, Compilation &compilation, const CompileFlags &flags) {
  if (int code = console.codeOf(compilation.import(flags.settings)))
    return code;
  if (int code = console.codeOf(compilation.buildFunctions(flags.settings)))
    return code;
  return flags.checkBeforePlan ? flags.checkBeforePlan(compilation) : int(kDone);
}

int windlass::applyPlan(Console &console, Compilation &compilation, const plan::PlanFile &plan, CompileFlags &flags,
                        const Flags &given, Purpose purpose) {
  if (int code = takeSettings(console, flags, given, plan))
    return code;
  flags.choice.cluster = plan.cluster;
  if (int code = resolveCosts(console, flags))
    return code;
  if (int code = build(console, compilation, flags))
    return code;
  return console.codeOf(compilation.applyPlan(plan, flags.choice, purpose));
}

int windlass::planModel(Console &console, Compilation &compilation, CompileFlags &flags, const Flags &given,
                        Purpose purpose) {
  if (!flags.planFile.empty()) {
    plan::PlanFile plan;
    if (int code = readPlan(console, flags.planFile, plan))
      return code;
    return applyPlan(console, compilation, plan, flags, given, purpose);
  }
  if (int code = resolveCluster(console, flags))
    return code;
  if (given.isGiven("offload") && plan::findTierRule(flags.choice.strategy))
    return console.fail(Code::contradiction, "--strategy " + flags.choice.strategy +
                                                 " says what the host's memory holds, and so does --offload; leave "
                                                 "one of them out");
  if (int code = resolveCosts(console, flags))
    return code;
  if (int code = resolveSchedule(console, flags, given))
    return code;
  if (int code = build(console, compilation, flags))
    return code;
  return console.codeOf(compilation.applyStrategy(flags.choice, purpose));
}
