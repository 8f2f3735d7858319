// The user's command: picks the verb.
#include "windlass/Commands/Commands.h"
#include "windlass/Pipeline/Compile.h"
#include "windlass/Support/Diagnostics.h"
#include "windlass/Support/Flags.h"
#include "windlass/Support/OutputFile.h"
#include "windlass/Support/Printable.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/raw_ostream.h"

#include <csignal>

using namespace windlass;

namespace {

struct Subcommand {
  const char *name, *summary;
  int (*run)(Console &, const std::vector<std::string> &);
};

constexpr Subcommand subcommands[] = {
    {"check", "import a model and say what trains, how data feeds it, and what is not supported", runCheck},
    {"plan", "find how every operator runs on a cluster", runPlan},
    {"emit", "write the C++ project of a plan", runEmit},
    {"train", "plan, emit, build and run", runTrain},
    {"simulate", "replay a plan's step: its time, where that goes, a timeline", runSimulate},
    {"profile", "measure a model's commands and this machine's collectives", runProfile},
    {"doctor", "look at this machine: what is missing, and what one loses", runDoctor},
    {"explain", "say why a plan places an operator so, or what the code of a message means", runExplain},
    {"diff", "compare two plans", runDiff},
    {"watch", "show a run while it goes on", runWatch},
    {"report", "write a run as one HTML page, or several to compare them", runReport},
    {"checkpoint", "show what a checkpoint holds, or export it as one file", runCheckpoint},
    {"place-experts", "place the experts of a mixture on GPUs, with replicas, for a load", runPlaceExperts},
    {"schedule", "search, make or check a pipeline's schedule, and draw it", runSchedule},
    {"cache", "list the built programs, and remove those that are not used", runCache},
};

void printHelp(llvm::raw_ostream &out) {
  out << "usage: windlass SUBCOMMAND ...\nCompiles ONNX training graphs into parallel training programs.\n\n";
  for (const Subcommand &each : subcommands) {
    out << "  " << each.name << std::string(15 - llvm::StringRef(each.name).size(), ' ') << each.summary << "\n";
  }
  out << "\nwindlass SUBCOMMAND --help tells more; windlass --version prints the version.\n";
}

int dispatch(Console &console, const std::vector<std::string> &words) {
  if (words.empty()) {
    printHelp(llvm::errs());
    return console.fail(Code::usage, "no subcommand is given");
  }
  if (words.front() == "--help" || words.front() == "-h") {
    printHelp(llvm::outs());
    return kDone;
  }
  if (words.front() == "--version") {
    llvm::outs() << "windlass " << WINDLASS_VERSION << "\n";
    return kDone;
  }
  std::vector<std::string> names;
  for (const Subcommand &each : subcommands) {
    if (words.front() == each.name)
      return each.run(console, {words.begin() + 1, words.end()});
    names.push_back(each.name);
  }
  std::string nearest = nearestOf(words.front(), names);
  return console.fail(Code::usage, "unknown subcommand " + printable(words.front()) +
                                       (nearest.empty() ? "; see --help" : "; did you mean " + nearest + "?"));
}

} // namespace

int main(int argc, char **argv) {
  // A reader that closes our output early is no error of ours.
  std::signal(SIGPIPE, SIG_IGN);
  std::vector<std::string> words(argv + 1, argv + argc);
  Console console;
  // Where standard output is a file, it may have begun before us.
  uint64_t begin = llvm::outs().tell();
  int code = dispatch(console, words);
  if (code != kDone && llvm::is_contained(words, "--json") && llvm::outs().tell() == begin)
    console.printErrorAsJson(code);
  if (std::string error = finishOutput(); !error.empty()) {
    code = console.fail(Code::output, error);
    finishOutput();
  }
  return code;
}
