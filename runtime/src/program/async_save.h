// Checkpoints that are written while the ranks compute (--async-save).
#ifndef WINDLASS_RT_SRC_PROGRAM_ASYNC_SAVE_H
#define WINDLASS_RT_SRC_PROGRAM_ASYNC_SAVE_H

#include "windlass/rt/context.h"
#include "windlass/rt/program.h"

#include "control.h"
#include "rank_state.h"
#include "save_parts.h"

#include <atomic>
#include <cstdint>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace windlass::rt {

/// Saves by a copy of what a rank writes, in memory of its own, which a thread writes to the rank's files. One save at
/// a time; `start` and `finish` are collective, and each gives every rank the same status.
class async_save {
public:
  async_save(const job &j, context &c, control &ranks, std::string run)
      : j_(j), context_(c), ranks_(ranks), run_(std::move(run)) {}
  async_save(const async_save &) = delete;
  async_save &operator=(const async_save &) = delete;
  ~async_save();

  /// Takes the memory for the copy, on the host. `threads` threads touch a part each.
  status open(std::int32_t threads);
  std::int64_t copy_bytes() const { return copy_.size(); }

  /// Copies what the rank writes and begins to write it. The values may change afterwards.
  status start(const save_point &at);
  /// Returns whether a save is started and not finished, on all ranks alike.
  bool is_running() const { return is_running_; }
  /// Returns whether this rank's files are written, or could not be.
  bool is_written() const { return is_written_.load(std::memory_order_acquire); }
  /// Returns the step of the save that is running, or of the last one.
  std::int64_t step() const { return at_.step; }
  /// Waits for all ranks' files, and gives the checkpoint its name.
  status finish();

private:
  status copy_pieces();
  /// The thread's work.
  void write();

  const job &j_;
  context &context_;
  control &ranks_;
  const std::string run_;
  std::vector<stored_tensor> tensors_;
  own_files files_;
  arena copy_; ///< the pieces of parameters, then those of state
  save_point at_;
  bool is_running_ = false;
  std::thread thread_;
  std::atomic<bool> is_written_ = false;
  status written_; ///< what became of the files; the thread's until `is_written`
  written_files results_;
};

} // namespace windlass::rt

#endif
