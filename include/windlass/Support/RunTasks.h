// Independent tasks on several threads.
#ifndef WINDLASS_SUPPORT_RUNTASKS_H
#define WINDLASS_SUPPORT_RUNTASKS_H

#include <algorithm>
#include <thread>
#include <vector>

namespace windlass {

/// Calls `task` with each number below `count`; returns when all are done. One thread takes them in their order.
template <typename Task> void runTasks(int threads, int count, const Task &task) {
  std::vector<std::thread> workers;
  auto work = [&](int first) {
    for (int k = first; k < count; k += std::max(threads, 1))
      task(k);
  };
  for (int t = 1; t < std::min(threads, count); ++t)
    workers.emplace_back(work, t);
  work(0);
  for (std::thread &worker : workers)
    worker.join();
}

} // namespace windlass

#endif
