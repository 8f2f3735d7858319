#include "windlass/rt/detail/instructions.h"

#include <algorithm>
#include <atomic>

namespace windlass::rt::detail {

namespace {

instruction_set found() {
#if defined(__x86_64__)
  // The extensions of x86-64-v4, which compilers take together.
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512cd") &&
      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl"))
    return instruction_set::avx512;
#endif
  return instruction_set::baseline;
}

std::atomic<instruction_set> &chosen() {
  static std::atomic<instruction_set> set{found()};
  return set;
}

} // namespace

instruction_set instructions() { return chosen().load(std::memory_order_relaxed); }

void limit_instructions(instruction_set most) { chosen().store(std::min(most, instructions())); }

} // namespace windlass::rt::detail
