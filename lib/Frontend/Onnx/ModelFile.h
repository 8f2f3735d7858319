//===- ModelFile.h - the message of a model file ----------------*- C++ -*-===//

#ifndef WINDLASS_LIB_FRONTEND_ONNX_MODELFILE_H
#define WINDLASS_LIB_FRONTEND_ONNX_MODELFILE_H

#include "windlass/Frontend/Onnx/Import.h"

#include "llvm/Support/Error.h"
#include "llvm/Support/MemoryBuffer.h"

#include <memory>
#include <string>
#include <vector>

namespace windlass {

/// Maps a model file, or unpacks it when it is gzipped. Refuses everything that is not a regular file.
llvm::Expected<std::unique_ptr<llvm::MemoryBuffer>> openModelFile(llvm::StringRef path, const ImportBudgets &budgets);

/// The byte range of one initializer's values in the message; `offset` is -1 when they are not contiguous there.
struct ValueRange {
  int64_t offset = -1;
  int64_t length = 0;
  /// Whether the values were left out of the skeleton.
  bool isStripped = false;
};

/// A model message without the values of large initializers, so that parsing copies the structure only, and where the
/// values of each initializer are, in the file's order.
struct MessageSkeleton {
  std::string bytes;
  std::vector<ValueRange> initializers;
};

/// Walks the protobuf wire format of a ModelProto. Protobuf itself reports no offsets.
llvm::Expected<MessageSkeleton> extractSkeleton(llvm::StringRef message, const ImportBudgets &budgets);

/// Returns a model message with fields appended: `toNodes` to nodes of its graph, by their place, `toModel` to itself;
/// both are encoded. Its IR version becomes at least `irVersion`. Nothing else changes.
llvm::Expected<std::string> appendFields(llvm::StringRef message, const std::map<int64_t, std::string> &toNodes,
                                         llvm::StringRef toModel, int64_t irVersion);

} // namespace windlass

#endif // WINDLASS_LIB_FRONTEND_ONNX_MODELFILE_H
