#include "ImportOnnx.h"

#include "windlass/Frontend/Onnx/Import.h"
#include "windlass/Support/Printable.h"

#include "llvm/Support/raw_ostream.h"

using namespace mlir;
using namespace windlass;

int windlass::printImportedOnnx(llvm::StringRef path, const std::vector<std::string> &words) {
  ImportOptions options;
  OpPrintingFlags flags;
  for (size_t i = 0; i < words.size(); ++i) {
    if (words[i] == "--locations") {
      flags.enableDebugInfo();
      continue;
    }
    const std::string &word = words[i];
    auto [name, value] = (++i < words.size() ? llvm::StringRef(words[i]) : llvm::StringRef()).split('=');
    if (word != "--dim" || value.getAsInteger(10, options.dims[name.str()])) {
      llvm::errs() << "expected --dim NAME=VALUE or --locations, got " << printable(word) << "\n";
      return 2;
    }
  }
  MLIRContext context;
  FailureOr<ImportedModel> model = importOnnx(path, context, options);
  if (failed(model))
    return 1;
  model->module->print(llvm::outs(), flags);
  llvm::outs() << "\n";
  return 0;
}
