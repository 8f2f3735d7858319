//===- WeightStore.h - the bytes that an imported model refers to -*- C++ -*-===//

#ifndef WINDLASS_FRONTEND_ONNX_WEIGHTSTORE_H
#define WINDLASS_FRONTEND_ONNX_WEIGHTSTORE_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/MemoryBuffer.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace windlass {

/// Resolves the sources (`#onnx.source<file, offset, length>`) of an imported model. The bytes of the message itself
/// stay mapped (or unpacked in memory) as long as the store lives; external files are opened when they are read.
class WeightStore {
public:
  /// Takes the unpacked model, `message`; external data are looked up in `folder`.
  WeightStore(std::unique_ptr<llvm::MemoryBuffer> message, std::string folder)
      : message(std::move(message)), folder(std::move(folder)) {}

  llvm::StringRef getMessage() const { return message->getBuffer(); }
  llvm::StringRef getFolder() const { return folder; }

  /// Keeps bytes that are not contiguous in the message; returns the offset by which they are read (file "").
  int64_t append(llvm::ArrayRef<char> bytes);

  /// Returns the bytes of a source inside the message, without a copy. Fails when the range is outside.
  llvm::Expected<llvm::ArrayRef<char>> getMessageBytes(int64_t offset, int64_t length) const;

  /// Copies `length` bytes from byte `offset` of `file` ("" is the message). Fails, with one line, when the file is
  /// missing or short, or leaves the model's folder.
  llvm::Expected<std::vector<char>> read(llvm::StringRef file, int64_t offset, int64_t length) const;

  /// Returns whether the bytes can be read: always inside the message, else when the file exists.
  bool isPresent(llvm::StringRef file) const;

private:
  std::unique_ptr<llvm::MemoryBuffer> message;
  std::vector<char> decoded;
  std::string folder;
};

/// Returns the path of external data `location` under `folder`, or nothing when no such file exists. Fails when the
/// location is absolute, has a `..`, or reaches outside of the folder by a symbolic link; links into the `blobs` folder
/// of a Hugging Face cache (`snapshots/<revision>/…` next to `blobs`) are accepted.
llvm::Expected<std::optional<std::string>> resolveExternalData(llvm::StringRef folder, llvm::StringRef location);

} // namespace windlass

#endif // WINDLASS_FRONTEND_ONNX_WEIGHTSTORE_H
