// A bound on the files of checkpoints that a process has open.
#ifndef WINDLASS_RT_SRC_PROGRAM_FILE_TURN_H
#define WINDLASS_RT_SRC_PROGRAM_FILE_TURN_H

#include <condition_variable>
#include <mutex>

namespace windlass::rt {

/// Lets only a few ranks of a process have a file of a checkpoint open at a time: hundreds of ranks as threads would
/// need more descriptors than a process may have.
class file_turn {
public:
  file_turn() {
    std::unique_lock<std::mutex> guard(lock);
    changed.wait(guard, [] { return free > 0; });
    --free;
  }
  file_turn(const file_turn &) = delete;
  file_turn &operator=(const file_turn &) = delete;
  ~file_turn() {
    const std::lock_guard<std::mutex> guard(lock);
    ++free;
    changed.notify_one();
  }

private:
  static inline std::mutex lock;
  static inline std::condition_variable changed;
  static inline int free = 32;
};

} // namespace windlass::rt

#endif
