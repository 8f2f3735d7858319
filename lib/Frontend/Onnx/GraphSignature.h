//===- GraphSignature.h - what an exporter says of its inputs ---*- C++ -*-===//

#ifndef WINDLASS_LIB_FRONTEND_ONNX_GRAPHSIGNATURE_H
#define WINDLASS_LIB_FRONTEND_ONNX_GRAPHSIGNATURE_H

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"

#include <optional>
#include <string>
#include <vector>

namespace windlass {

/// An input of the traced program: a tensor of the exported module, or a value that the caller gives.
struct SignatureEntry {
  /// `PARAMETER`, `BUFFER`, `CONSTANT_TENSOR`, or `USER_INPUT` for all else.
  std::string kind;
  /// The input's name in the traced program, and its path in the module; no path for an input of the caller's.
  std::string placeholder, target;
};

/// The key of the graph's metadata under which PyTorch's exporter writes its signature.
constexpr llvm::StringLiteral kGraphSignatureKey = "pkg.torch.export.ExportedProgram.graph_signature";

/// The largest signature that is read, in bytes: one of 100,000 tensors has less.
constexpr size_t kGraphSignatureBytes = size_t(8) << 20;

/// Reads the text of a signature: a section `# inputs` with a line `NAME: KIND target='PATH'` for each tensor and
/// `NAME: USER_INPUT` for each input, then a section `# outputs`. Fails when the text is too long, a line has another
/// form, a name or target is given twice, or no parameter is named; the error continues "the graph signature ...".
llvm::Expected<std::vector<SignatureEntry>> readGraphSignature(llvm::StringRef text);

/// A call of the traced program.
struct TracedCall {
  llvm::StringRef result, target, arguments;
};

/// Reads `%NAME : [num_users=N] = call_function[target=torch.ops.OPERATOR](args = (...), kwargs = {...})`; nothing for
/// text of another form.
std::optional<TracedCall> readTracedCall(llvm::StringRef text);

} // namespace windlass

#endif // WINDLASS_LIB_FRONTEND_ONNX_GRAPHSIGNATURE_H
