#include "windlass/rt/emulated_link.h"

#include "windlass/rt/kernel_times.h"

#include <algorithm>
#include <chrono>
#include <thread>

namespace windlass::rt {

void emulated_link::wait(double begin, std::int64_t bytes) {
  if (bytes_per_second_ <= 0)
    return;
  double end = 0;
  {
    const std::lock_guard<std::mutex> guard(mutex_);
    free_ = std::max(free_, begin) + static_cast<double>(bytes) / static_cast<double>(bytes_per_second_);
    end = free_;
  }
  if (const double rest = end - clock_seconds(); rest > 0)
    std::this_thread::sleep_for(std::chrono::duration<double>(rest));
}

} // namespace windlass::rt
