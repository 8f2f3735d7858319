// One run at a time writes a run's folder.
#ifndef WINDLASS_RT_SRC_PROGRAM_RUN_LOCK_H
#define WINDLASS_RT_SRC_PROGRAM_RUN_LOCK_H

#include "windlass/rt/status.h"

#include <string>

namespace windlass::rt {

/// A lock on RUN/.lock. The kernel releases it when the process ends, however it ends.
class run_lock {
public:
  run_lock() = default;
  run_lock(const run_lock &) = delete;
  run_lock &operator=(const run_lock &) = delete;
  ~run_lock();
  /// Takes the lock of a folder that exists, unless this object holds it. Returns run_in_use, naming the holder, when
  /// another process has it.
  status take(const std::string &run);

private:
  int file_ = -1;
};

} // namespace windlass::rt

#endif
