// Child processes, started from a list of words: no text ever reaches a shell.
#ifndef WINDLASS_SUPPORT_PROCESS_H
#define WINDLASS_SUPPORT_PROCESS_H

#include "llvm/ADT/StringRef.h"

#include <functional>
#include <string>
#include <vector>

namespace windlass {

struct ProcessResult {
  /// Exit code; 128 + the signal's number when one ended it; -1 when it could not be started (`error` says why).
  int code = -1;
  std::string error;
};

/// Runs `words` and waits. Standard output and error go to `log` when one is given, else are the caller's own.
ProcessResult runProcess(const std::vector<std::string> &words, const std::string &log = "");

/// Runs `words` and returns what they print on either stream, at most 64 KiB; empty where they cannot be started.
std::string captureOutput(const std::vector<std::string> &words);

/// The same as runProcess; SIGINT and SIGTERM that reach the caller become SIGUSR1 of the child, which then saves and
/// ends. `onError`, where it is given, gets the child's standard error as it comes.
ProcessResult runTraining(const std::vector<std::string> &words,
                          const std::function<void(llvm::StringRef)> &onError = nullptr);

/// The program of that name on PATH, or nothing.
std::string findProgram(const std::string &name);

} // namespace windlass

#endif
