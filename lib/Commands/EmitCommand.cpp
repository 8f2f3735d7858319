// windlass emit: the C++ project of a plan.
#include "CommandSupport.h"
#include "windlass/Programs/PackedWeights.h"

#include "windlass/Commands/Commands.h"
#include "windlass/Support/Words.h"

#include "llvm/Support/FileSystem.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/raw_ostream.h"

using namespace windlass;

int windlass::runEmit(Console &console, const std::vector<std::string> &words) {
  Flags flags("emit MODEL [--plan plan.json] -o DIR",
              "Writes the C++ project that trains a model by a plan.\n"
              "For example: windlass emit model.onnx --plan plan.json -o program");
  CommonFlags common;
  CompileFlags compileFlags;
  std::string output;
  flags.addText("plan", "FILE", "the plan (default: one is made from the flags below)", compileFlags.planFile);
  flags.addText("o", "DIR", "a new or empty folder, or an earlier project", output);
  compileFlags.declarePlan(flags);
  common.declare(flags);
  std::vector<std::string> positional;
  int code;
  if (!parseWords(console, flags, common, words, positional, 1, 1, code))
    return code;
  if (output.empty())
    return console.fail(Code::usage, "emit needs -o DIR");
  auto context = makeContext(console, common.verbose);
  Compilation compilation(*context, positional.front(),
                          printEvents(console, common.quiet ? Talk::none : Talk::warnings));
  if ((code = planModel(console, compilation, compileFlags, flags, Purpose::program)))
    return code;
  cpp::ProjectFiles files;
  if ((code = console.codeOf(compilation.emit(compileFlags.choice, files))))
    return code;
  // The certificate proves what the emitted plan claims.
  if (compilation.getSearch())
    files["plan.cert"] = compilation.getSearch()->certificate;
  if (std::string error = cpp::writeProject(files, output); !error.empty())
    return console.fail(Code::output, error);
  if (!files.count("plan.cert"))
    llvm::sys::fs::remove(output + "/plan.cert");
  if (std::string error = writePackedWeights(compilation.getModule(), compilation.getWeights(), /*withTrained=*/true,
                                             output + "/params.safetensors");
      !error.empty())
    return console.fail(Code::output, error);
  if (common.json) {
    llvm::json::OStream json(llvm::outs(), 2);
    json.object([&] {
      json.attribute("folder", output);
      json.attribute("files", static_cast<int64_t>(files.size() + 1));
      json.attribute("ranks", compilation.getRanks());
    });
    llvm::outs() << "\n";
  } else if (!common.quiet) {
    llvm::outs() << "wrote " << countOf(files.size() + 1, "file") << " into '" << output << "'; build with: cmake -S "
                 << output << " -B " << output << "/build && cmake --build " << output << "/build\n";
  }
  return kDone;
}
