// Files that appear whole or not at all, and never at the other end of a link.
#ifndef WINDLASS_SUPPORT_OUTPUTFILE_H
#define WINDLASS_SUPPORT_OUTPUTFILE_H

#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/raw_ostream.h"

#include <string>

namespace windlass {

/// Writes `text` under an unpredictable temporary name and renames it: what stands at `path`, a link too, is replaced.
/// Returns a one-line error or nothing.
std::string writeFile(llvm::StringRef path, llvm::StringRef text);
/// Writes in the same way what `write` puts into a stream; the file is dropped when `write` returns an error.
std::string writeFile(llvm::StringRef path, llvm::function_ref<std::string(llvm::raw_ostream &)> write);

/// A folder whose files are ours. How it is reached is the user's business; below it no link is followed, so that
/// nobody who can write into it leads us out of it. All functions return a one-line error or nothing.
class OutputFolder {
public:
  OutputFolder() = default;
  OutputFolder(const OutputFolder &) = delete;
  OutputFolder &operator=(const OutputFolder &) = delete;
  ~OutputFolder();
  /// Opens a folder, made with its parents where it is missing.
  std::string open(llvm::StringRef path);
  /// Replaces the file `relative`, whose folders are made. A file that holds `text` already keeps its time.
  std::string write(llvm::StringRef relative, llvm::StringRef text, bool isExecutable = false);

private:
  int descriptor = -1;
  std::string path;
};

/// Writes out what is left for standard output, and returns a one-line error or nothing. A reader that has closed it
/// wanted no more, which is no error. To be called at the end of a program, because its streams are of no use
/// afterwards.
std::string finishOutput();

} // namespace windlass

#endif
