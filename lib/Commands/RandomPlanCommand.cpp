// windlass-opt --random-plan: any legal plan of a model as plan.json, for tests of programs.
#include "CommandSupport.h"

#include "windlass/Commands/Commands.h"
#include "windlass/Support/OutputFile.h"

using namespace windlass;

int windlass::runRandomPlan(Console &console, const std::vector<std::string> &words) {
  Flags flags("opt --random-plan MODEL --cluster C --seed N -o plan.json",
              "Writes a random legal plan; one seed gives one plan.");
  CommonFlags common;
  CompileFlags compileFlags;
  int64_t seed = 0;
  std::string output;
  compileFlags.declareSettings(flags);
  common.declare(flags);
  flags.addText("cluster", "C", "the devices", compileFlags.cluster);
  flags.addInteger("seed", "number of the plan (default 0)", seed, 0, int64_t(1) << 62);
  flags.addText("o", "FILE", "file for the plan", output);
  std::vector<std::string> positional;
  int code;
  if (!parseWords(console, flags, common, words, positional, 1, 1, code))
    return code;
  if (output.empty())
    return console.fail(Code::usage, "--random-plan needs -o");
  auto context = makeContext(console, common.verbose);
  Compilation compilation(*context, positional.front(), printEvents(console));
  if ((code = resolveCluster(console, compileFlags)) ||
      (code = console.codeOf(compilation.import(compileFlags.settings))) ||
      (code = console.codeOf(compilation.buildFunctions(compileFlags.settings))) ||
      (code = console.codeOf(compilation.applyRandomPlan(compileFlags.choice, seed))))
    return code;
  if (std::string error = writeFile(output, compilation.getPlanText()); !error.empty())
    return console.fail(Code::output, error);
  return kDone;
}
