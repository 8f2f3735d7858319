// Child processes, started from a list of words: no text ever reaches a shell, and none outlives windlass.
#ifndef WINDLASS_SUPPORT_PROCESS_H
#define WINDLASS_SUPPORT_PROCESS_H

#include "windlass/Support/Guard.h"

#include "llvm/ADT/StringRef.h"

#include <functional>
#include <string>
#include <vector>

namespace windlass {

/// Runs `words` and waits. Where `log` is given, standard output and error are appended to it; else they are the
/// caller's own.
ProcessResult runProcess(const std::vector<std::string> &words, const std::string &log = "");

/// Runs `words` and returns what they print on either stream, at most 64 KiB; empty where they cannot be started.
std::string captureOutput(const std::vector<std::string> &words);

/// Runs a training program. SIGINT, SIGTERM, SIGHUP and SIGUSR1 that reach windlass make the program save and end;
/// SIGQUIT and a second SIGINT end it, a third SIGINT kills it. `onError`, where it is given, gets the program's
/// standard error as it comes.
ProcessResult runTraining(const std::vector<std::string> &words,
                          const std::function<void(llvm::StringRef)> &onError = nullptr);

/// Returns the program of that name on PATH, or nothing.
std::string findProgram(const std::string &name);

} // namespace windlass

#endif
