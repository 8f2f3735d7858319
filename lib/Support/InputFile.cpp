#include "windlass/Support/InputFile.h"

#include "windlass/Support/Printable.h"
#include "windlass/Support/StrictJson.h"

#include "llvm/Support/FileSystem.h"

llvm::Expected<std::unique_ptr<llvm::MemoryBuffer>> windlass::readInputFile(llvm::StringRef path, int64_t mostBytes,
                                                                            llvm::StringRef readAs) {
  llvm::sys::fs::file_status status;
  std::error_code error = llvm::sys::fs::status(path, status);
  // The file is examined before it is opened, because opening a named pipe waits.
  if (!error && (!llvm::sys::fs::is_regular_file(status) || status.getSize() > static_cast<uint64_t>(mostBytes)))
    return makeError("the " + readAs + " " + printable(path) + " is no regular file of at most " +
                     llvm::Twine(mostBytes >> 20) + " MiB");
  if (!error) {
    auto buffer = llvm::MemoryBuffer::getFile(path);
    if (buffer)
      return std::move(*buffer);
    error = buffer.getError();
  }
  return makeError("cannot read the " + readAs + " " + printable(path) + ": " + error.message());
}
