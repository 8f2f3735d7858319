// windlass check: what a model is, before anything is planned.
#include "CommandSupport.h"

#include "windlass/Commands/Commands.h"
#include "windlass/Frontend/Check/CheckModel.h"

#include "llvm/Support/raw_ostream.h"

using namespace windlass;

int windlass::runCheck(Console &console, const std::vector<std::string> &words) {
  Flags flags("check MODEL",
              "Imports a training graph and prints its parameters, how data feeds it, its loss, its operators,\n"
              "what trains, and everything that is not supported.\n"
              "For example: windlass check model.onnx -v");
  CommonFlags common;
  CompileFlags compileFlags;
  compileFlags.declareModel(flags);
  common.declare(flags);
  std::vector<std::string> positional;
  int code;
  if (!parseWords(console, flags, common, words, positional, 1, 1, code))
    return code;
  CheckOptions options;
  options.import.dims = compileFlags.settings.dims;
  options.import.train = compileFlags.settings.train;
  options.convert.loss = compileFlags.settings.loss;
  options.convert.acceptAltered = compileFlags.settings.acceptAltered;
  options.freeze = compileFlags.settings.freeze;
  options.strict = compileFlags.settings.strict;
  options.json = common.json;
  options.verbose = common.verbose;
  auto context = makeContext(console, common.verbose);
  return console.codeOf(
      checkModel(positional.front(), *context, options, common.quiet && !common.json ? llvm::nulls() : llvm::outs()));
}
