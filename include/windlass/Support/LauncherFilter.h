// What ranks print, told apart from what their launcher adds to it.
#ifndef WINDLASS_SUPPORT_LAUNCHERFILTER_H
#define WINDLASS_SUPPORT_LAUNCHERFILTER_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"

#include <functional>
#include <string>

namespace windlass {

/// Takes Open MPI's own messages out of the stream in which `mpirun` forwards its ranks' standard error. They stand
/// between two lines of 74 dashes, as orte_show_help prints them, or say that a signal is forwarded. Everything else is
/// handed on as it comes, also lines that are not complete.
class LauncherFilter {
public:
  /// `pass` gets what the ranks print.
  explicit LauncherFilter(std::function<void(llvm::StringRef)> pass) : pass(std::move(pass)) {}
  /// Takes what has just been read.
  void add(llvm::StringRef bytes);
  /// Takes the end: what was held back because it could have become a message of the launcher's is handed on.
  void finish();
  /// Whether the ranks have printed anything.
  bool hasPassed() const { return passed; }
  /// The launcher's own messages, without their rules; at most a few KiB.
  const std::string &getOwnWords() const { return ownWords; }

private:
  /// How a message of the launcher's begins and ends.
  struct Frame {
    llvm::StringRef begin, end;
  };
  static llvm::ArrayRef<Frame> getFrames();
  void hand(llvm::StringRef text);
  bool findMessage();
  bool endMessage();

  std::function<void(llvm::StringRef)> pass;
  /// Read, and not yet known to be the one or the other.
  std::string pending, ownWords;
  /// What has come of a message whose end is missing.
  const Frame *frame = nullptr;
  bool passed = false;
};

} // namespace windlass

#endif
