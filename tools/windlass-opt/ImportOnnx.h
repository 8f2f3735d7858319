// windlass-opt --import-onnx FILE: a model as L0.
#ifndef WINDLASS_TOOLS_IMPORTONNX_H
#define WINDLASS_TOOLS_IMPORTONNX_H

#include "llvm/ADT/StringRef.h"

#include <string>
#include <vector>

namespace windlass {

/// Imports `path` and prints L0 to standard output; `words` may be `--dim NAME=VALUE` pairs, and
/// `--locations` to print locations too. Returns an exit code.
int printImportedOnnx(llvm::StringRef path, const std::vector<std::string> &words);

} // namespace windlass

#endif
