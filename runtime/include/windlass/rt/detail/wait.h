// Blocking on a 32-bit word of memory, between threads or (in shared memory) between processes.
#ifndef WINDLASS_RT_DETAIL_WAIT_H
#define WINDLASS_RT_DETAIL_WAIT_H

#include <atomic>
#include <cstdint>

namespace windlass::rt::detail {

/// Returns when `word` no longer holds `old`, or after about 20 ms: callers loop, and look at what may end the wait in
/// between. Spins for a few microseconds and then lets other threads have the core for some tens more before it sleeps,
/// since the thread that is waited for may need it.
void wait_while_equal(const std::atomic<std::uint32_t> &word, std::uint32_t old, std::atomic<std::uint32_t> &sleepers);

/// Wakes all threads that sleep on `word`; cheap while `sleepers` is 0.
void wake_all(std::atomic<std::uint32_t> &word, std::atomic<std::uint32_t> &sleepers);

/// A condition that may end a wait before it is over.
class wait_guard {
public:
  virtual ~wait_guard() = default;
  /// Returns whether the wait should end; called before a wait and about every 20 ms during it.
  virtual bool is_over() = 0;
};

/// A barrier of a fixed number of threads or processes that can be used again and again. Zero bytes are a valid
/// initial state, so that it can live in fresh shared memory.
struct barrier {
  std::atomic<std::uint64_t> state;          ///< generation in the high half, members that arrived in the low half
  std::atomic<std::uint32_t> word, sleepers; ///< `word` follows the generation, for sleeping on

  /// Waits for all members. Either all members return true, or some left with false because `guard` ended their wait
  /// before all had arrived, and then none returns true. Without a guard the wait ends with the last arrival only.
  bool wait(std::uint32_t members, wait_guard *guard);
};

} // namespace windlass::rt::detail

#endif
