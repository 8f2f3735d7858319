#include "BuildProgress.h"

#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/raw_ostream.h"

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <unistd.h>

using namespace windlass;

BuildProgress::BuildProgress(bool isShown) : isShown(isShown), isRenewed(isatty(STDERR_FILENO) == 1) {}

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

/// The last few lines of a log that is being written.
static std::string readEnd(const std::string &path) {
  auto text = llvm::MemoryBuffer::getFile(path, /*IsText=*/false, /*RequiresNullTerminator=*/false,
                                          /*IsVolatile=*/true);
  return text ? (*text)->getBuffer().take_back(4096).str() : "";
}

rt::status BuildProgress::during(const std::string &phase, const std::string &log,
                                 llvm::function_ref<rt::status()> work) const {
  if (!isShown)
    return work();
  std::mutex mutex;
  std::condition_variable ended;
  bool isDone = false;
  std::string shown;
  auto show = [&] {
    std::string count = findBuildCount(readEnd(log));
    std::string text = "windlass: " + phase + (count.empty() ? "" : ": " + count);
    // A build that stands still fills no log.
    if (!isRenewed && text == shown)
      return;
    shown = text;
    llvm::errs() << (isRenewed ? "\r\033[K" : "") << text << (isRenewed ? "" : "\n");
  };
  std::thread watcher([&] {
    std::unique_lock<std::mutex> lock(mutex);
    do
      show();
    while (!ended.wait_for(lock, std::chrono::milliseconds(isRenewed ? 200 : 5000), [&] { return isDone; }));
    if (isRenewed)
      llvm::errs() << "\r\033[K";
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
