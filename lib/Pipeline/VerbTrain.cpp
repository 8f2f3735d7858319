// windlass train: plan, emit, build and launch in one go.
#include "PackedWeights.h"
#include "ProgramFlags.h"
#include "VerbSupport.h"

#include "windlass/Pipeline/ProgramCache.h"
#include "windlass/Pipeline/Verbs.h"
#include "windlass/Support/Process.h"

#include "llvm/Support/Path.h"
#include "llvm/Support/raw_ostream.h"

#include <cstdlib>
#include <unistd.h>

using namespace windlass;

/// The value of a flag among the words, or nothing.
static std::string valueOf(const std::vector<std::string> &words, llvm::StringRef flag) {
  for (size_t i = 0; i < words.size(); ++i) {
    llvm::StringRef word = words[i];
    if (word == flag && i + 1 < words.size())
      return words[i + 1];
    if (word.consume_front(flag) && word.consume_front("="))
      return word.str();
  }
  return "";
}

/// `mpirun` with what Open MPI 4.1 needs to run several ranks on few cores and to let them save when they are told to
/// end.
static std::vector<std::string> launcher(const std::string &mpirun, int64_t ranks) {
  std::vector<std::string> words = {mpirun, "-n", std::to_string(ranks), "--bind-to", "none", "--oversubscribe"};
  if (geteuid() == 0)
    words.push_back("--allow-run-as-root");
  for (auto [name, value] : {std::pair("mpi_yield_when_idle", "1"), std::pair("odls_base_sigkill_timeout", "60"),
                             // Without a network between hosts shared memory is all that is needed.
                             std::pair("btl_vader_single_copy_mechanism", "none")}) {
    words.push_back("--mca");
    words.push_back(name);
    words.push_back(value);
  }
  return words;
}

int windlass::runTrain(const std::vector<std::string> &words) {
  Flags flags("train MODEL [-n RANKS] --data F --steps N -o RUN [FLAGS]",
              "Plans, emits, builds and runs the training of a model.");
  CommonFlags common;
  CompileFlags compileFlags;
  std::string output;
  flags.addInteger("n", "ranks (default: those of --cluster or --plan, else 1)", compileFlags.ranks, 1, 65536);
  flags.addText("plan", "FILE", "the plan (default: one is made from the flags below)", compileFlags.planFile);
  flags.addText("o", "RUN", "the run's folder", output);
  compileFlags.declarePlan(flags);
  compileFlags.declareSettings(flags);
  common.declare(flags);
  flags.addHeading("All flags of the emitted program are handed on; DIR/build/train --help lists them:");
  std::string names = " ";
  for (const ProgramFlag &flag : getProgramFlags())
    names += " --" + std::string(flag.name);
  flags.addHeading(names);

  std::vector<std::string> own = words, handedOn, positional;
  bool wantsHelp = llvm::is_contained(words, "--help") || llvm::is_contained(words, "-h");
  if (!wantsHelp)
    if (std::string error = takeProgramFlags(own, handedOn); !error.empty())
      return fail(kUsage, error);
  int code;
  if (!parseWords(flags, common, own, positional, 1, 1, code))
    return code;
  compileFlags.settings.clip |= !valueOf(handedOn, "--clip-norm").empty();

  auto context = makeContext(common.verbose);
  Compilation compilation(*context, positional.front());
  if ((code = compile(compilation, compileFlags, flags)))
    return code;
  int64_t ranks = compilation.getRanks();
  cpp::ProjectFiles files;
  if ((code = compilation.emit(files)))
    return code;

  std::string error, program;
  bool fromFile = valueOf(handedOn, "--init") != "random";
  std::string dataKey = fromFile ? hashPackedWeights(compilation.getModule(), compilation.getWeights(), error) : "";
  if (!error.empty())
    return fail(kBadInput, error);
  auto writeData = [&](const std::string &folder) {
    return fromFile
               ? writePackedWeights(compilation.getModule(), compilation.getWeights(), folder + "/params.safetensors")
               : std::string();
  };
  if (!common.quiet && isatty(STDERR_FILENO))
    llvm::errs() << "windlass: building the training program\n";
  error = buildProgram(files, dataKey, writeData, common.verbose, program);
  if (!error.empty())
    return fail(kInternal, error);

  std::vector<std::string> command;
  if (ranks > 1 && valueOf(handedOn, "--communicator") != "local") {
    std::string mpirun = findProgram("mpirun");
    if (mpirun.empty())
      return fail(kBadInput,
                  "several ranks need mpirun: install openmpi-bin, or give --communicator local for threads");
    command = launcher(mpirun, ranks);
  }
  command.push_back(program);
  command.insert(command.end(), handedOn.begin(), handedOn.end());
  if (!output.empty())
    command.insert(command.end(), {"-o", output});
  if (valueOf(handedOn, "--weights").empty()) {
    llvm::StringRef folder = llvm::sys::path::parent_path(positional.front());
    command.insert(command.end(), {"--weights", folder.empty() ? "." : folder.str()});
  }
  for (auto [given, name] :
       {std::pair(common.json, "--json"), std::pair(common.verbose, "-v"), std::pair(common.quiet, "-q")})
    if (given)
      command.push_back(name);
  ProcessResult result = runTraining(command);
  return result.error.empty() ? result.code : fail(kInternal, result.error);
}
