//===- ModelFile.cpp - open a model file, gzipped or not ------------------===//

#include "ModelFile.h"

#include "windlass/Support/Gzip.h"

#include "llvm/Support/FileSystem.h"

using namespace windlass;
namespace fs = llvm::sys::fs;

static llvm::Error makeError(const llvm::Twine &message) {
  return llvm::createStringError(llvm::inconvertibleErrorCode(), message);
}

llvm::Expected<std::unique_ptr<llvm::MemoryBuffer>> windlass::openModelFile(llvm::StringRef path,
                                                                            const ImportBudgets &budgets) {
  if (path.contains('\0'))
    return makeError("is not a file name");
  fs::file_status status;
  if (std::error_code code = fs::status(path, status))
    return makeError(code == std::errc::no_such_file_or_directory ? "no such file"
                                                                  : "cannot be read: " + code.message());
  if (status.type() == fs::file_type::directory_file)
    return makeError("is a folder, not an ONNX file");
  if (status.type() != fs::file_type::regular_file)
    return makeError("is not a regular file");
  if (status.getSize() == 0)
    return makeError("is empty");
  auto buffer = llvm::MemoryBuffer::getFile(path, /*IsText=*/false, /*RequiresNullTerminator=*/false);
  if (!buffer)
    return makeError("cannot be read: " + buffer.getError().message());
  llvm::StringRef text = (*buffer)->getBuffer();
  if (isGzip(text))
    return unpackGzip(text, path, budgets.unpackedBytes);
  return std::move(*buffer);
}
