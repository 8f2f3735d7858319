#include "BuildProgress.h"

#include "llvm/Support/MemoryBuffer.h"

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>

using namespace windlass;

std::string windlass::findBuildCount(llvm::StringRef log) {
  std::string count;
  while (!log.empty()) {
    llvm::StringRef line;
    std::tie(line, log) = log.split('\n');
    if (!line.consume_front("["))
      continue;
    llvm::StringRef inside = line.take_until([](char c) { return c == ']'; }).trim();
    if (inside.size() == line.size() || inside.find_first_not_of("0123456789/%") != llvm::StringRef::npos)
      continue;
    auto [done, all] = inside.split('/');
    count = all.empty() ? inside.rtrim('%').str() + " %" : done.str() + " of " + all.str();
  }
  return count;
}

/// Returns the last few lines of a log that is being written.
static std::string readEnd(const std::string &path) {
  auto text = llvm::MemoryBuffer::getFile(path, /*IsText=*/false, /*RequiresNullTerminator=*/false,
                                          /*IsVolatile=*/true);
  return text ? (*text)->getBuffer().take_back(4096).str() : "";
}

rt::status windlass::tellProgress(const BuildEvents &events, const std::string &phase, const std::string &log,
                                  llvm::function_ref<rt::status()> work) {
  if (!events.progress)
    return work();
  std::mutex mutex;
  std::condition_variable ended;
  bool isDone = false;
  std::thread watcher([&] {
    std::unique_lock<std::mutex> lock(mutex);
    do {
      std::string count = findBuildCount(readEnd(log));
      events.progress(phase + (count.empty() ? "" : ": " + count));
    } while (!ended.wait_for(lock, events.interval, [&] { return isDone; }));
    events.progress("");
  });
  rt::status result = work();
  {
    std::lock_guard<std::mutex> lock(mutex);
    isDone = true;
  }
  ended.notify_one();
  watcher.join();
  return result;
}
