// windlass profile: how long a model's commands and this machine's collectives take.
#include "CommandSupport.h"

#include "windlass/Commands/Commands.h"
#include "windlass/Dialect/Plan/Transforms/NamedStrategies.h"
#include "windlass/Doctor/Doctor.h"
#include "windlass/Profile/Measuring/MeasuredCommands.h"
#include "windlass/Profile/Report.h"
#include "windlass/Programs/ProgramCache.h"
#include "windlass/Support/InputFile.h"
#include "windlass/Support/OutputFile.h"
#include "windlass/Support/Process.h"
#include "windlass/Support/StrictJson.h"
#include "windlass/Support/Words.h"

#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/raw_ostream.h"

#include <chrono>

using namespace mlir;
using namespace windlass;

namespace {

/// The most rounds of search and measurement; each search uses the measurements of the rounds before.
constexpr int kMostRounds = 3;

/// The state of one run of the subcommand.
class Profiling {
public:
  Profiling(Console &console, MLIRContext &context, std::string modelPath, CompileFlags &compileFlags,
            const CommonFlags &common, int64_t seconds)
      : console(console), context(context), modelPath(std::move(modelPath)), compileFlags(compileFlags), common(common),
        secondsLeft(seconds) {}

  Profile profile;
  /// The number of commands of all plans, measured or not.
  size_t commands = 0;

  /// Runs the subcommand. Where `emitted` is given, only writes the measuring program there.
  int run(const Flags &flags, const std::string &emitted) {
    compileFlags.choice.fusesEpilogues = false; // both ways are measured
    MeasuredCommands first(context, profile);
    if (int code = addGiven(flags, first))
      return code;
    const Cluster &cluster = profile.cluster = compileFlags.choice.cluster;
    if (cluster.hosts.size() > 1 || cluster.hosts.front().count > 1)
      return console.fail(Code::devices, "profiles are taken on one host, but --cluster is " + cluster.describe() +
                                             "; give the devices of one of its hosts");
    if (cluster.getBackend() != "cpu" && emitted.empty())
      return console.fail(Code::devices,
                          "profiles of back end '" + cluster.getBackend() +
                              "' are taken where its devices are: give --emit DIR, and build and run the "
                              "program there, or measure processors with --cluster cpu:N");
    if (int code = addNamed(first))
      return code;
    if (int code = addFound(first))
      return code;
    if (!emitted.empty())
      return emit(first, emitted);
    if (int code = measure(first))
      return code;
    for (int round = 1; round < kMostRounds && secondsLeft > 0; ++round) {
      compileFlags.choice.profile = std::make_shared<Profile>(profile);
      MeasuredCommands more(context, profile);
      if (int code = addFound(more))
        return code;
      if (more.getKeys().empty())
        break;
      if (int code = measure(more))
        return code;
    }
    return kDone;
  }

private:
  int addGiven(const Flags &flags, MeasuredCommands &to) {
    if (compileFlags.planFile.empty())
      return resolveCluster(console, compileFlags);
    Compilation compilation(context, modelPath, printEvents(console));
    if (int code = planModel(console, compilation, compileFlags, flags, Purpose::trial))
      return code;
    addAll(compilation.getModule(), to);
    return kDone;
  }

  void add(sched::ProgramOp schedule, MeasuredCommands &to) {
    to.add(schedule);
    if (compileFlags.choice.cluster.getBackend() == "cuda")
      to.addFused(schedule);
  }

  /// Adds the commands of all positions.
  void addAll(ModuleOp module, MeasuredCommands &to) {
    for (sched::ProgramOp program : sched::getPrograms(module))
      add(program, to);
  }

  int addNamed(MeasuredCommands &to) {
    Compilation compilation(context, modelPath, printEvents(console));
    if (int code = console.codeOf(compilation.import(compileFlags.settings)))
      return code;
    if (int code = console.codeOf(compilation.buildFunctions(compileFlags.settings)))
      return code;
    // Measures named strategies besides the plan that the search finds, except those that do not divide or do not fit.
    for (const plan::NamedStrategy &strategy : plan::getNamedStrategies())
      for (llvm::StringRef measured : strategy.measuredAs) {
        PlanChoice named = compileFlags.choice;
        named.strategy = measured.str();
        Schedule schedule;
        if (compilation.trySchedule(named, schedule))
          addAll(*schedule.module, to);
      }
    return kDone;
  }

  /// Adds the commands of the plan that the search finds by the times that are known. It uses the host's memory only
  /// where no other plan fits into the devices.
  int addFound(MeasuredCommands &to) {
    Compilation compilation(context, modelPath, printEvents(console));
    if (int code = console.codeOf(compilation.import(compileFlags.settings)))
      return code;
    if (int code = console.codeOf(compilation.buildFunctions(compileFlags.settings)))
      return code;
    PlanChoice found = compileFlags.choice;
    found.strategy = "auto";
    bool isFound = false;
    if (found.cluster.getBackend() != "cpu" || found.cluster.isEmulated()) {
      // The second search reports what more memory does not mend.
      ScopedDiagnosticHandler withoutErrors(
          &context, [](Diagnostic &its) { return success(its.getSeverity() == DiagnosticSeverity::Error); });
      isFound = succeeded(compilation.applyStrategy(found, Purpose::trial));
      found.searchesOffload = true;
    }
    if (!isFound)
      if (int code = console.codeOf(compilation.applyStrategy(found, Purpose::trial)))
        return code;
    addAll(compilation.getModule(), to);
    return kDone;
  }

  int emit(MeasuredCommands &measured, const std::string &folder) {
    commands = measured.getKeys().size();
    auto files = measured.makeProject(profile.cluster, /*writesProfile=*/true);
    if (failed(files))
      return console.codeOf(files);
    if (std::string error = cpp::writeProject(*files, folder); !error.empty())
      return console.fail(Code::output, error);
    return kDone;
  }

  int measure(MeasuredCommands &commands);

  Console &console;
  MLIRContext &context;
  std::string modelPath;
  CompileFlags &compileFlags;
  const CommonFlags &common;
  int64_t secondsLeft;
};

MeasuredTime readTime(ObjectReader &reader) {
  MeasuredTime time;
  time.medianSeconds = reader.getNumber("seconds", 3600);
  if (const llvm::json::Value *spread = reader.get("spread_seconds"))
    time.spreadSeconds = spread->getAsNumber().value_or(0);
  time.turns = reader.getInteger("turns", 1, 1000000);
  return time;
}

/// Takes the results that the measuring program wrote.
llvm::Error readResults(llvm::StringRef text, const std::vector<CommandKey> &keys, Profile &profile) {
  llvm::Expected<llvm::json::Value> document = parseStrictJson(text, Profile::kMostBytes);
  if (!document)
    return document.takeError();
  ObjectReader reader(*document, "");
  reader.getInteger("version", 1, 1);
  profile.threads = reader.getInteger("threads", 1, 65536);
  const llvm::json::Value *collectives = reader.get("collectives"), *commands = reader.get("commands");
  if (llvm::Error error = reader.takeError())
    return error;
  auto forEach = [](const llvm::json::Value &list, auto visit) -> llvm::Error {
    const llvm::json::Array *array = list.getAsArray();
    for (size_t i = 0; array && i < array->size(); ++i) {
      ObjectReader entry((*array)[i], "[" + std::to_string(i) + "]");
      visit(entry);
      if (llvm::Error error = entry.takeError())
        return error;
    }
    return llvm::Error::success();
  };
  if (llvm::Error error = forEach(*collectives, [&](ObjectReader &entry) {
        std::string kind = entry.getString("kind");
        int64_t members = entry.getInteger("members", 2, Cluster::kMaxDevices);
        profile.collectives[{kind, members, entry.getInteger("bytes", 1, int64_t(1) << 40)}] = readTime(entry);
      }))
    return error;
  return forEach(*commands, [&](ObjectReader &entry) {
    const CommandKey &key = keys[entry.getInteger("command", 0, static_cast<int64_t>(keys.size()) - 1)];
    CommandEntry &made = profile.commands[key.text];
    made.work = key.work;
    for (auto [name, time] : {std::pair("loaded", &made.loaded), std::pair("alone", &made.alone)})
      if (const llvm::json::Value *value = entry.get(name)) {
        ObjectReader timeReader(*value, entry.getPath(name));
        *time = readTime(timeReader);
        if (llvm::Error error = timeReader.takeError())
          entry.fail(name, llvm::toString(std::move(error)));
      }
  });
}

int Profiling::measure(MeasuredCommands &measured) {
  commands += measured.getKeys().size();
  int64_t ranks = profile.cluster.getDevices();
  if (ranks > 1 && findProgram("mpirun").empty())
    return console.fail(Code::launch, "several ranks need mpirun: install openmpi-bin");
  auto files = measured.makeProject(profile.cluster, /*writesProfile=*/false);
  if (failed(files))
    return console.codeOf(files);
  ProgramSource source;
  source.files = *files;
  source.program = "measure";
  BuiltProgram program;
  if (!common.quiet)
    console.say("building a program that measures " + countOf(measured.getKeys().size(), "command"));
  if (rt::status built = buildProgram(source, printEvents(console, common), program); !built.is_ok())
    return console.fail(built);
  const std::string &folder = program.folder;
  llvm::SmallString<128> results;
  if (std::error_code error = llvm::sys::fs::createTemporaryFile("windlass-profile", "json", results))
    return console.fail(Code::output, "cannot make a temporary file: " + error.message());
  std::vector<std::string> words = {folder + "/run.sh", "-o", results.str().str(), "--seconds",
                                    std::to_string(secondsLeft)};
  if (compileFlags.choice.threads > 0)
    words.insert(words.end(), {"--threads", std::to_string(compileFlags.choice.threads)});
  auto begin = std::chrono::steady_clock::now();
  ProcessResult result = runProcess(words, common.quiet ? folder + "/measure.log" : "");
  secondsLeft -= std::chrono::duration_cast<std::chrono::seconds>(std::chrono::steady_clock::now() - begin).count();
  auto text = readInputFile(results, Profile::kMostBytes, "measurements");
  llvm::sys::fs::remove(results);
  if (!result.error.empty() || result.code != 0)
    return console.fail(Code::launch,
                        "the measuring program " + printable(folder + "/run.sh") + " ended with " +
                            (result.error.empty() ? "exit code " + std::to_string(result.code) : result.error));
  if (!text)
    return console.fail(Code::internal, llvm::toString(text.takeError()));
  if (llvm::Error error = readResults((*text)->getBuffer(), measured.getKeys(), profile))
    return console.fail(Code::internal, "the measuring program wrote " + llvm::toString(std::move(error)));
  return kDone;
}

std::string reportText(const Profile &profile) {
  std::string text = llvm::formatv("{0,-28} {1,7} {2,12} {3,7} {4,7} {5,12} {6,7} {7,7}\n", "family", "entries",
                                   "measured s", "spread", "alone", "figures s", "error", "fit")
                         .str();
  for (const FamilyReport &report : reportProfile(profile))
    text += llvm::formatv("{0,-28} {1,7} {2,12:f6} {3,6:f1}% {4,6:f2}x {5,12:f6} {6,6:f0}% {7,6:f0}%\n", report.family,
                          report.entries, report.measuredSeconds, 100 * report.spreadShare, report.aloneSpeed,
                          report.analyticSeconds, 100 * report.analyticErrorShare, 100 * report.fitErrorShare)
                .str();
  return text;
}

void printAsJson(const Profile &profile, size_t commands, llvm::StringRef output) {
  llvm::json::OStream json(llvm::outs(), 2);
  json.object([&] {
    json.attribute("machine", profile.machine);
    json.attribute("cluster", profile.cluster.describe());
    json.attribute("threads", profile.threads);
    json.attribute("commands", static_cast<int64_t>(commands));
    json.attribute("measured_commands", static_cast<int64_t>(profile.commands.size()));
    json.attribute("measured_collectives", static_cast<int64_t>(profile.collectives.size()));
    json.attribute("profile", output);
    json.attributeArray("families", [&] {
      for (const FamilyReport &report : reportProfile(profile))
        json.object([&] {
          json.attribute("family", report.family);
          json.attribute("entries", report.entries);
          json.attribute("measured_seconds", report.measuredSeconds);
          json.attribute("spread_share", report.spreadShare);
          json.attribute("alone_speed", report.aloneSpeed);
          json.attribute("analytic_seconds", report.analyticSeconds);
          json.attribute("analytic_error_share", report.analyticErrorShare);
          json.attribute("fit_error_share", report.fitErrorShare);
        });
    });
  });
  llvm::outs() << "\n";
}

} // namespace

int windlass::runProfile(Console &console, const std::vector<std::string> &words) {
  Flags flags("profile MODEL --cluster C -o profile.json",
              "Measures the commands of a model's named strategies and of the plan that the search finds, and the "
              "collectives of this machine, for --costs of plan and train.\n"
              "For example: windlass profile model.onnx --cluster cpu:2 -o profile.json");
  CommonFlags common;
  CompileFlags compileFlags;
  std::string output, emitted;
  bool wantsReport = false;
  int64_t seconds = 300;
  flags.addText("cluster", "C", "the devices: cpu:N, with --emit also GPUs such as h200:8, or the file of one host",
                compileFlags.cluster);
  flags.addText("plan", "FILE", "a plan whose commands are measured too, and first", compileFlags.planFile);
  flags.addText("o", "FILE", "file for the profile", output);
  flags.addText("emit", "DIR", "write the program that measures, whose -o FILE is the profile, instead of running it",
                emitted);
  flags.addInteger("seconds", "most seconds of measuring; times that are left are fitted (default 300)", seconds, 1,
                   86400);
  flags.addInteger("threads", "threads of a rank (default: its part of the processors)", compileFlags.choice.threads, 1,
                   1024);
  flags.addSwitch("report",
                  "print, by family, measured times next to those of public figures, and how well fits predict them",
                  wantsReport);
  compileFlags.declareReserve(flags);
  compileFlags.declareSettings(flags);
  common.declare(flags);
  std::vector<std::string> positional;
  int code;
  if (!parseWords(console, flags, common, words, positional, 1, 1, code))
    return code;
  if (output.empty() == emitted.empty())
    return console.fail(Code::usage, "profile needs -o FILE, or --emit DIR");
  if (compileFlags.cluster.empty() && compileFlags.planFile.empty())
    return console.fail(Code::usage, "profile needs --cluster, such as --cluster cpu:2");
  auto context = makeContext(console, common.verbose);
  Profiling profiling(console, *context, positional.front(), compileFlags, common, seconds);
  Profile &profile = profiling.profile;
  std::vector<doctor::Finding> findings;
  doctor::examineMachine(findings);
  for (const doctor::Finding &finding : findings)
    if (finding.name == "processors")
      profile.machine = finding.found;
  if ((code = profiling.run(flags, emitted)))
    return code;
  if (!emitted.empty()) {
    if (!common.quiet)
      llvm::outs() << "wrote a program that measures " << countOf(profiling.commands, "command") << " to '" << emitted
                   << "'; build it where the devices are, and run its run.sh -o profile.json\n";
    return kDone;
  }
  if (std::string error = writeFile(output, writeProfile(profile)); !error.empty())
    return console.fail(Code::output, error);
  if (common.json) {
    printAsJson(profile, profiling.commands, output);
    return kDone;
  }
  if (!common.quiet)
    llvm::outs() << "measured " << profile.commands.size() << " of " << countOf(profiling.commands, "command")
                 << " and " << countOf(profile.collectives.size(), "collective") << " into '" << output << "'\n";
  if (wantsReport)
    llvm::outs() << reportText(profile);
  return kDone;
}
