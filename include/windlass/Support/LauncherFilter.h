// What ranks print, told apart from what their launcher adds to it.
#ifndef WINDLASS_SUPPORT_LAUNCHERFILTER_H
#define WINDLASS_SUPPORT_LAUNCHERFILTER_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"

#include <functional>
#include <string>

namespace windlass {

/// Takes Open MPI's own messages out of the stream in which `mpirun` forwards its ranks' standard error. These messages
/// stand between two lines of 74 dashes, as orte_show_help prints them, or say that a signal is forwarded. Everything
/// else is passed on as it comes, incomplete lines too.
class LauncherFilter {
public:
  /// Passes what the ranks print to `pass`.
  explicit LauncherFilter(std::function<void(llvm::StringRef)> pass) : pass(std::move(pass)) {}
  /// Takes what has just been read.
  void add(llvm::StringRef bytes);
  /// Ends the stream: passes on what was held back because it could have become a message of the launcher's.
  void finish();
  /// Returns whether the ranks have printed anything.
  bool hasPassed() const { return passed; }
  /// Returns the launcher's own messages, without their rules; at most 4 KiB.
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
  /// What was read and not yet told apart, and the launcher's messages.
  std::string pending, ownWords;
  /// What has come of a message whose end is missing.
  const Frame *frame = nullptr;
  bool passed = false;
};

} // namespace windlass

#endif
