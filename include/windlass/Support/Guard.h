// The guard: a small process between windlass and a program that it runs. It ends the program, and all that the program
// has started, when windlass asks for it or is gone, whatever has ended windlass.
#ifndef WINDLASS_SUPPORT_GUARD_H
#define WINDLASS_SUPPORT_GUARD_H

#include <string>
#include <vector>

#include <sys/types.h>

namespace windlass {

struct ProcessResult {
  /// The exit code; 128 + the signal's number when a signal ended it; -1 when it could not be started (`error` says
  /// why).
  int code = -1;
  std::string error;
  /// Whether it was asked to end, not only to save, before it ended.
  bool wasEnded = false;
};

/// The file descriptors for a program; -1 stands for windlass's own.
struct Streams {
  int input = -1, output = -1, error = -1;
};

/// One guarded program.
class Guard {
public:
  enum class Ask : char {
    save = 's', ///< SIGUSR1: a training program finishes its step, saves and ends
    end = 'e',  ///< SIGTERM, and what still runs after `kPatienceSeconds` is killed
    kill = 'k', ///< SIGKILL for everything below the guard
  };
  /// The seconds between SIGTERM and SIGKILL: Open MPI takes 6 s to end its ranks when it is told to
  /// (docs/rfcs/0004-lost-ranks.md).
  static constexpr int kPatienceSeconds = 8;

  Guard() = default;
  Guard(const Guard &) = delete;
  /// Ends the program where nobody has waited for it.
  ~Guard();

  /// Starts a program; no shell takes over where the file is no program. Returns an error text, or an empty one.
  std::string start(const std::vector<std::string> &words, const Streams &streams);
  /// Asks the guard to do `what`. May be called from a signal handler. A guard or program that was stopped continues.
  void ask(Ask what);
  ProcessResult wait();

private:
  pid_t process = -1;
  int commands = -1;
  volatile bool wasEnded = false;
};

} // namespace windlass

#endif
