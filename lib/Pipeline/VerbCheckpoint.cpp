// windlass checkpoint: what a checkpoint holds, in other forms.
#include "VerbSupport.h"

#include "windlass/Pipeline/Verbs.h"
#include "windlass/rt/checkpoint.h"

#include "llvm/Support/JSON.h"
#include "llvm/Support/raw_ostream.h"

using namespace windlass;

int windlass::runCheckpoint(const std::vector<std::string> &words) {
  Flags flags("checkpoint export DIR -o FILE [--state]",
              "Merges a checkpoint of any layout into one safetensors file of whole tensors by logical name.\n"
              "DIR is a checkpoint's folder, or a run's, whose newest valid one is taken.");
  CommonFlags common;
  std::string output;
  bool state = false;
  flags.addText("o", "FILE", "the safetensors file", output);
  flags.addSwitch("state", "the optimizer's state too", state);
  common.declare(flags);
  std::vector<std::string> positional;
  int code;
  if (!parseWords(flags, common, words, positional, 2, 2, code))
    return code;
  if (positional[0] != "export")
    return fail(kUsage, "unknown action '" + positional[0] + "'; checkpoint knows: export");
  if (output.empty())
    return fail(kUsage, "checkpoint export needs -o FILE");
  rt::status done = rt::export_checkpoint(positional[1], output, state);
  if (!done.is_ok())
    return fail(static_cast<int>(done.code()), done.message());
  if (common.json) {
    llvm::json::OStream json(llvm::outs());
    json.object([&] { json.attribute("file", output); });
    llvm::outs() << "\n";
  } else if (!common.quiet) {
    llvm::outs() << "wrote " << output << "\n";
  }
  return kDone;
}
