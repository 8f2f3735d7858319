// windlass train: plan, emit, build and launch in one go.
#include "CommandSupport.h"
#include "windlass/Programs/Hosts.h"
#include "windlass/Programs/PackedWeights.h"
#include "windlass/Programs/ProgramOutline.h"

#include "windlass/Commands/Commands.h"
#include "windlass/Programs/ProgramCache.h"
#include "windlass/Support/LauncherFilter.h"
#include "windlass/Support/Printable.h"
#include "windlass/Support/Process.h"
#include "windlass/Support/Words.h"
#include "windlass/rt/checkpoint.h"
#include "windlass/rt/flags.h"

#include "llvm/ADT/StringSet.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/raw_ostream.h"

#include <csignal>
#include <cstdlib>
#include <unistd.h>

using namespace windlass;

namespace {

/// The flags of the program whose values `train` knows itself.
constexpr char kPredictedFlag[] = "predicted-seconds", kModelNameFlag[] = "model-name";

/// The flags of the emitted program that `train` does not declare itself. Their values are checked before anything is
/// built.
class ProgramFlags {
public:
  void declare(Flags &flags) {
    flags.addHeading("Passed to the program:");
    for (const rt::program_flag &flag : rt::program_flags())
      if (flag.name != "version" && flag.name != kPredictedFlag && flag.name != kModelNameFlag && !flags.has(flag.name))
        flags.add(flag.name, flag.argument, flag.help, [this, flag](llvm::StringRef text) -> std::string {
          if (rt::status checked = rt::check_flag(flag.name, text.str()); !checked.is_ok())
            return checked.message();
          values[flag.name] = text.str();
          std::string word = "--" + flag.name;
          if (flag.name != "config") // what it holds is handed on
            words.push_back(flag.argument.empty() || text.empty() ? word : word + "=" + text.str());
          return "";
        });
  }

  /// Returns the value given last, or nothing.
  std::string get(const std::string &name) const {
    auto found = values.find(name);
    return found == values.end() ? "" : found->second;
  }
  const std::vector<std::string> &getWords() const { return words; }

private:
  std::map<std::string, std::string> values;
  std::vector<std::string> words;
};

/// How a run ended.
struct RunResult : ProcessResult {
  /// The host that mpirun has lost, or "a host" where it names none; empty where all were there until the end.
  std::string lostHost;
};

} // namespace

/// Returns the file of `--config`, or nothing.
static std::string findConfig(const std::vector<std::string> &words) {
  for (size_t i = 0; i < words.size(); ++i) {
    llvm::StringRef word = words[i];
    if (word == "--config" && i + 1 < words.size())
      return words[i + 1];
    if (word.consume_front("--config="))
      return word.str();
  }
  return "";
}

/// Returns the name of the flag that a word is; nothing for another word.
static llvm::StringRef nameOf(llvm::StringRef word) {
  return word.starts_with("-") ? word.ltrim('-').split('=').first : "";
}

/// Reads the settings of a `--config` file as flags. Those that are given as flags too are left out: flags win, and a
/// list that is given as a flag replaces the file's.
static int readConfig(Console &console, const std::string &path, llvm::ArrayRef<std::string> given, Flags &flags) {
  std::vector<std::string> words, kept, positional;
  if (rt::status read = rt::read_config(path, words); !read.is_ok())
    return console.fail(std::move(read).as(Code::settings_file));
  llvm::StringSet<> names;
  for (const std::string &word : given)
    names.insert(nameOf(word));
  for (size_t i = 0; i < words.size(); ++i) {
    bool isKept = !names.contains(nameOf(words[i]));
    // The value of a flag of one letter is a word of its own.
    bool hasValue =
        i + 1 < words.size() && nameOf(words[i]).size() == 1 && !llvm::StringRef(words[i + 1]).starts_with("-");
    if (isKept)
      kept.insert(kept.end(), words.begin() + i, words.begin() + i + 1 + hasValue);
    i += hasValue;
  }
  if (std::string error = flags.parse(kept, positional, 0, 0); !error.empty())
    return console.fail(Code::settings_file, printable(path) + ": " + error);
  return kDone;
}

/// Returns the host whose loss mpirun reports, or nothing.
static std::string findLostHost(llvm::StringRef words) {
  // It does not tell a daemon that has ended from one that did not start. All hosts were there shortly before.
  if (words.contains("ORTE was unable to reliably start one or more daemons"))
    return "a host";
  auto [before, name] = words.split("Remote daemon:").second.split(" on node ");
  return name.empty() ? "" : "the host " + printable(name.take_until(llvm::isSpace));
}

/// Runs the ranks under mpirun, and shows only the ranks' part of its output.
static RunResult runUnderLauncher(std::vector<std::string> command, const ProgramFlags &programFlags,
                                  const CommonFlags &common) {
  // A rank sees a pipe where this program sees a terminal.
  bool isTerminal = isatty(STDERR_FILENO);
  if (programFlags.get("progress").empty())
    command.push_back(isTerminal ? "--progress=terminal" : "--progress=lines");
  // Repeated messages are counted in lines that no rule sets apart.
  setenv("OMPI_MCA_orte_base_help_aggregate", "0", /*overwrite=*/1);
  char last = '\n';
  LauncherFilter filter([&](llvm::StringRef text) {
    llvm::errs() << text;
    last = text.back();
  });
  RunResult result = {runTraining(command, [&](llvm::StringRef bytes) { filter.add(bytes); }), ""};
  filter.finish();
  result.lostHost = findLostHost(filter.getOwnWords());
  if (last != '\n') // a rank was ended in the middle of its line
    llvm::errs() << (isTerminal ? "\r\033[K" : "\n");
  if (common.verbose && !filter.getOwnWords().empty())
    llvm::errs() << "mpirun: " << oneLine(filter.getOwnWords()) << "\n";
  if (result.error.empty() && result.lostHost.empty() && result.code > 0 && result.code <= 128 && !filter.hasPassed())
    result.error = "mpirun ended with exit code " + std::to_string(result.code) +
                   " before a rank said anything: " + oneLine(llvm::StringRef(filter.getOwnWords()).trim());
  return result;
}

/// Reads `--hosts`. Where no other flag says for which devices to plan, it is for equal hosts like this machine.
/// Returns an exit code.
static int resolveHosts(Console &console, const std::string &text, CompileFlags &flags, std::vector<RankHost> &hosts) {
  llvm::Expected<std::vector<RankHost>> read = readHosts(text);
  if (!read)
    return console.fail(Code::launch, "--hosts: " + llvm::toString(read.takeError()));
  hosts = std::move(*read);
  int64_t started = countRanks(hosts);
  if (flags.ranks > 0 && flags.ranks != started)
    return console.fail(Code::contradiction, "-n is " + std::to_string(flags.ranks) + " but --hosts starts " +
                                                 countOf(started, "rank") + "; give one of them");
  if (!flags.cluster.empty() || !flags.planFile.empty())
    return kDone;
  for (const RankHost &host : hosts)
    if (host.ranks != hosts.front().ranks)
      return console.fail(Code::cluster, "--hosts has " + countOf(hosts.front().ranks, "rank") + " on " +
                                             printable(hosts.front().name) + " and " + std::to_string(host.ranks) +
                                             " on " + printable(host.name) +
                                             "; describe hosts that differ with --cluster FILE, or give each as many");
  flags.cluster =
      "cpu:" + (hosts.size() > 1 ? std::to_string(hosts.size()) + "x" : "") + std::to_string(hosts.front().ranks);
  return kDone;
}

/// Checks a run before it is planned and built: for every error that the program would find before its first step, and
/// for what is missing to start it.
static int checkRun(Console &console, Compilation &compilation, const CompileFlags &flags,
                    const std::vector<std::string> &words, llvm::ArrayRef<RankHost> hosts,
                    llvm::StringRef communicator) {
  const Cluster &cluster = flags.choice.cluster;
  bool usesProcesses = communicator != "local";
  if (cluster.getBackend() != "cpu")
    return console.fail(Code::devices,
                        "'windlass train' runs programs on this machine's processors, but the plan is for " +
                            cluster.describe() +
                            ": emit the program with 'windlass emit' and build it there, or train with "
                            "--cluster cpu:N");
  if (rt::status checked = checkTypes(cluster.getBackend(), flags.settings); !checked.is_ok())
    return console.fail(checked);
  if (communicator == "tcp")
    return console.fail(Code::contradiction,
                        "--communicator tcp is for a program whose processes another launcher starts; windlass train "
                        "starts them by mpirun: leave it out, or emit the program for torchrun");
  int64_t started = countRanks(hosts);
  if (!hosts.empty() && started != cluster.getDevices())
    return console.fail(Code::contradiction, "--hosts starts " + countOf(started, "rank") + ", but the plan is for " +
                                                 std::to_string(cluster.getDevices()) + "; let them agree");
  if (!hosts.empty() && (started == 1 || !usesProcesses))
    return console.fail(Code::contradiction, "--hosts is for several ranks that are processes; " +
                                                 std::string(usesProcesses ? "train one rank on its host itself"
                                                                           : "leave --communicator local out"));
  if (cluster.getDevices() > 1 && usesProcesses && findProgram("mpirun").empty())
    return console.fail(Code::launch,
                        "several ranks need mpirun: install openmpi-bin, or give --communicator local for threads");
  if (rt::status checked = checkHosts(hosts); !checked.is_ok())
    return console.fail(checked);
  ProgramOutline outline(compilation.getPlanned(), cluster.getDevices());
  rt::status checked = rt::check_run(outline.get(), words);
  return checked.is_ok() ? kDone : console.fail(checked);
}

/// Returns the words that are passed on to the program, besides those that are known once it is built.
static std::vector<std::string> handOn(const ProgramFlags &programFlags, const std::string &model,
                                       const std::string &output) {
  std::vector<std::string> handed = programFlags.getWords();
  if (!output.empty())
    handed.insert(handed.end(), {"-o", output});
  // The model is called by the name of its file: the name in the graph is the same for every graph of the exporter. It
  // is not compiled in, so that a model of another name is no other program.
  handed.push_back(std::string("--") + kModelNameFlag + "=" + llvm::sys::path::filename(model).str());
  if (programFlags.get("weights").empty()) {
    llvm::StringRef folder = llvm::sys::path::parent_path(model);
    handed.insert(handed.end(), {"--weights", folder.empty() ? "." : folder.str()});
  }
  return handed;
}

/// Reports the end of a run in the folder `run` that the program itself could not report; returns an exit code.
static int codeOfRun(Console &console, const RunResult &result, const std::string &run) {
  if (!result.error.empty())
    return console.fail(Code::launch, result.error);
  auto wayOn = [&] { return rt::describe_way_on(run); };
  if (!result.lostHost.empty())
    return console.fail(Code::rank_lost, result.lostHost + " is gone, or the network to it; " + wayOn() +
                                             ", on other hosts or fewer ranks if need be");
  if (result.wasEnded && result.code != kDone && result.code != exitCodeOf(Code::interrupted))
    return console.fail(Code::rank_lost, "the run was ended before it had saved, as it was told to; " + wayOn());
  // The code is 128 and a signal's number, of the program itself or of a rank, as mpirun reports it. Signals that a
  // processor or abort() raises are not used to end a process from outside.
  if (int signal = result.code - 128; signal > 0) {
    for (auto [number, name] : {std::pair(SIGSEGV, "SIGSEGV"),
                                {SIGABRT, "SIGABRT"},
                                {SIGBUS, "SIGBUS"},
                                {SIGFPE, "SIGFPE"},
                                {SIGILL, "SIGILL"}})
      if (signal == number)
        return console.fail(Code::internal, std::string("the training program crashed with ") + name +
                                                "; its last words are above, and in RUN/logs");
    return console.fail(Code::rank_lost, "a rank was ended by signal " + std::to_string(signal) + "; " + wayOn());
  }
  return result.code;
}

int windlass::runTrain(Console &console, const std::vector<std::string> &words) {
  Flags flags("train MODEL [-n RANKS] --data F --steps N -o RUN [FLAGS]",
              "Plans, emits, builds and runs the training of a model.\n"
              "For example: windlass train model.onnx -n 2 --data corpus.txt --bytes --steps 200 -o run");
  CommonFlags common;
  CompileFlags compileFlags;
  ProgramFlags programFlags;
  std::string output, hostsText;
  std::vector<RankHost> hosts;
  flags.addInteger("n", "ranks (default: those of --cluster or --plan, else 1)", compileFlags.ranks, 1, 65536);
  flags.addText("hosts", "A:N,B:N|FILE",
                "the hosts to start N ranks on, over SSH, or a file with a line such as 'node1 slots=4' for each; its "
                "name holds a slash (default: this machine, or what Slurm has allocated; see docs/hosts.md)",
                hostsText);
  flags.addText("plan", "FILE", "the plan (default: one is made from the flags below)", compileFlags.planFile);
  flags.addText("o", "RUN", "folder that the run writes (default run)", output);
  compileFlags.declarePlan(flags);
  common.declare(flags);
  programFlags.declare(flags);

  int code;
  if (std::string config = findConfig(words); !config.empty())
    if ((code = readConfig(console, config, words, flags)))
      return code;
  std::vector<std::string> positional;
  if (!parseWords(console, flags, common, words, positional, 1, 1, code))
    return code;
  llvm::StringRef(programFlags.get("threads")).getAsInteger(10, compileFlags.choice.threads);
  compileFlags.settings.clip |= !programFlags.get("clip-norm").empty();
  compileFlags.settings.ema |= !programFlags.get("ema-decay").empty();
  if (!hostsText.empty() && (code = resolveHosts(console, hostsText, compileFlags, hosts)))
    return code;

  std::vector<std::string> handed = handOn(programFlags, positional.front(), output);
  std::string communicator = programFlags.get("communicator");
  compileFlags.checkBeforePlan = [&](Compilation &compilation) {
    return checkRun(console, compilation, compileFlags, handed, hosts, communicator);
  };

  auto context = makeContext(console, common.verbose);
  Compilation compilation(*context, positional.front(), printEvents(console, common.quiet ? Talk::none : Talk::all));
  if ((code = planModel(console, compilation, compileFlags, flags, Purpose::program)))
    return code;
  std::string predicted = llvm::formatv("{0:e9}", compilation.predict(compileFlags.choice).seconds);
  ProgramSource source;
  source.program = "train";
  if ((code = console.codeOf(compilation.emit(compileFlags.choice, source.files))))
    return code;

  std::string error;
  // Parameters that do not train take their values from the model in any case.
  bool fromFile = programFlags.get("init") != "random";
  source.dataKey = hashPackedWeights(compilation.getModule(), compilation.getWeights(), fromFile, error);
  if (!error.empty())
    return console.fail(Code::external_data, error);
  source.writeData = [&](const std::string &target) {
    return writePackedWeights(compilation.getModule(), compilation.getWeights(), fromFile,
                              target + "/params.safetensors");
  };
  BuiltProgram built;
  if (rt::status done = buildProgram(source, printEvents(console, common), built); !done.is_ok())
    return console.fail(done);
  std::string program = built.folder + "/build/train";
  if (rt::status seen = checkHostsSee(hosts, program); !seen.is_ok())
    return console.fail(seen);

  bool hasLauncher = compilation.getRanks() > 1 && communicator != "local";
  std::vector<std::string> command = {hasLauncher ? built.folder + "/run.sh" : program};
  if (!hosts.empty())
    command.insert(command.end(), {"--hosts", listOf(hosts)});
  command.push_back(std::string("--") + kPredictedFlag + "=" + predicted);
  command.insert(command.end(), handed.begin(), handed.end());
  for (auto [given, name] :
       {std::pair(common.json, "--json"), std::pair(common.verbose, "-v"), std::pair(common.quiet, "-q")})
    if (given)
      command.push_back(name);
  return codeOfRun(console,
                   hasLauncher ? runUnderLauncher(command, programFlags, common) : RunResult{runTraining(command), ""},
                   output.empty() ? "run" : output);
}
