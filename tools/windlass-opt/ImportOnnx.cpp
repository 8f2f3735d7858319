#include "ImportOnnx.h"

#include "windlass/Frontend/Onnx/Import.h"
#include "windlass/Support/Printable.h"

#include "llvm/Support/raw_ostream.h"

using namespace mlir;
using namespace windlass;

int windlass::printImportedOnnx(llvm::StringRef path, const std::vector<std::string> &words) {
  ImportOptions options;
  for (size_t i = 0; i < words.size(); i += 2) {
    auto [name, value] = (i + 1 < words.size() ? llvm::StringRef(words[i + 1]) : llvm::StringRef()).split('=');
    if (words[i] != "--dim" || value.getAsInteger(10, options.dims[name.str()])) {
      llvm::errs() << "expected --dim NAME=VALUE, got " << printable(words[i]) << "\n";
      return 2;
    }
  }
  MLIRContext context;
  FailureOr<ImportedModel> model = importOnnx(path, context, options);
  if (failed(model))
    return 1;
  model->module->print(llvm::outs());
  llvm::outs() << "\n";
  return 0;
}
