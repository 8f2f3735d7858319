// What a build of a program tells its caller.
#ifndef WINDLASS_PROGRAMS_BUILDEVENTS_H
#define WINDLASS_PROGRAMS_BUILDEVENTS_H

#include "llvm/ADT/StringRef.h"

#include <chrono>
#include <functional>

namespace windlass {

/// What a build tells its caller while it works; empty functions are not called.
struct BuildEvents {
  /// Takes what is being done, such as "compiling the program: 3 of 14", at its begin and then every `interval`, and an
  /// empty line when it has ended. Called from another thread, while the caller waits.
  std::function<void(llvm::StringRef line)> progress;
  std::chrono::milliseconds interval{5000};
  /// Takes the end of the log of a build that failed, lines of text.
  std::function<void(llvm::StringRef text)> log;
  /// Takes one line: that another build is waited for, or that an earlier one is damaged.
  std::function<void(llvm::StringRef line)> warning;
  /// Takes one line: where a program is built, or was before.
  std::function<void(llvm::StringRef line)> note;
};

} // namespace windlass

#endif
