// A lock between processes. A process that ends, however that happens, releases it.
#ifndef WINDLASS_SUPPORT_FILELOCK_H
#define WINDLASS_SUPPORT_FILELOCK_H

#include "windlass/rt/status.h"

#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/StringRef.h"

#include <string>

namespace windlass {

class FileLock {
public:
  FileLock() = default;
  FileLock(FileLock &&other) : descriptor(other.descriptor) { other.descriptor = -1; }
  FileLock &operator=(FileLock &&other) {
    std::swap(descriptor, other.descriptor);
    return *this;
  }
  ~FileLock() { release(); }

  /// Takes the lock of a file, which is made where it is missing. Waits at most `seconds` for another holder; `waiting`
  /// is told that holder once, before the wait.
  rt::status take(const std::string &path, int64_t seconds, llvm::function_ref<void(llvm::StringRef holder)> waiting);
  /// Locks a folder for one holder or, with `shared`, for several that only want it to stay. Returns false where
  /// another lock of the folder forbids that, or there is no such folder.
  bool tryFolder(const std::string &path, bool shared);
  /// Locks a file for one holder, without waiting; the file is made where it is missing. Returns false where that
  /// fails.
  bool tryFile(const std::string &path);
  void release();

private:
  int descriptor = -1;
};

} // namespace windlass

#endif
