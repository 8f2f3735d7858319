#include "windlass/rt/detail/wait.h"

#include <ctime>
#include <thread>

#if defined(__linux__)
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

namespace windlass::rt::detail {

namespace {

void pause_core() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#else
  std::this_thread::yield();
#endif
}

/// Sleeps until woken; the caller holds a count in `sleepers`, so that no wake is missed: the kernel compares again.
void sleep_on(const std::atomic<std::uint32_t> &word, std::uint32_t old) {
#if defined(__linux__)
  const timespec limit = {0, 20'000'000};
  syscall(SYS_futex, &word, FUTEX_WAIT, old, &limit, nullptr, 0);
#else
  (void)word;
  (void)old;
  const timespec nap = {0, 50'000};
  nanosleep(&nap, nullptr);
#endif
}

} // namespace

void wait_while_equal(const std::atomic<std::uint32_t> &word, std::uint32_t old, std::atomic<std::uint32_t> &sleepers) {
  // Sleeping and waking takes tens of microseconds on virtual machines, so that a while of trying pays. The core may be
  // needed by the very thread that will change the word: after the first microseconds others may have it.
  constexpr int spins = 100, yields = 100;
  for (int i = 0; i < spins + yields; ++i) {
    if (word.load(std::memory_order_acquire) != old)
      return;
    if (i < spins)
      pause_core();
    else
      std::this_thread::yield();
  }
  sleepers.fetch_add(1);
  if (word.load() == old)
    sleep_on(word, old);
  sleepers.fetch_sub(1);
}

void wake_all(std::atomic<std::uint32_t> &word, std::atomic<std::uint32_t> &sleepers) {
  // Sequentially consistent with the sleeper's count and its second look at the word.
  if (sleepers.load() == 0)
    return;
#if defined(__linux__)
  syscall(SYS_futex, &word, FUTEX_WAKE, 0x7fffffff, nullptr, nullptr, 0);
#else
  (void)word;
#endif
}

bool barrier::wait(std::uint32_t members, wait_guard *guard) {
  if (guard != nullptr && guard->is_over())
    return false;
  std::uint64_t now = state.load();
  const auto generation = [](std::uint64_t s) { return s >> 32; };
  while (true) {
    const bool is_last = static_cast<std::uint32_t>(now) + 1 == members;
    if (!state.compare_exchange_weak(now, is_last ? (generation(now) + 1) << 32 : now + 1))
      continue;
    if (!is_last)
      break;
    word.fetch_add(1);
    wake_all(word, sleepers);
    return true;
  }
  const std::uint64_t mine = generation(now);
  while (true) {
    const std::uint32_t seen = word.load();
    now = state.load();
    if (generation(now) != mine)
      return true;
    if (guard != nullptr && guard->is_over()) {
      // Take the arrival back, unless the last member came meanwhile.
      while (generation(now) == mine)
        if (state.compare_exchange_weak(now, now - 1))
          return false;
      return true;
    }
    wait_while_equal(word, seen, sleepers);
  }
}

} // namespace windlass::rt::detail
