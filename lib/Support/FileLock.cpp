#include "windlass/Support/FileLock.h"

#include "windlass/Support/Printable.h"

#include <cerrno>
#include <chrono>
#include <cstring>
#include <fcntl.h>
#include <sys/file.h>
#include <thread>
#include <unistd.h>

using namespace windlass;

/// Returns the process that wrote itself into a lock file.
static std::string holderIn(int file) {
  char text[32];
  ssize_t length = pread(file, text, sizeof text, 0);
  long long process = 0;
  llvm::StringRef line(text, length > 0 ? static_cast<size_t>(length) : 0);
  return line.trim().getAsInteger(10, process) ? "another process" : "process " + std::to_string(process);
}

static int openLockFile(const std::string &path) {
  return open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
}

/// Writes into the file who holds its lock, for those that wait.
static void writeHolder(int file) {
  std::string text = std::to_string(getpid()) + "\n";
  (void)!ftruncate(file, 0);
  (void)!pwrite(file, text.data(), text.size(), 0);
}

rt::status FileLock::take(const std::string &path, int64_t seconds,
                          llvm::function_ref<void(llvm::StringRef holder)> waiting) {
  release();
  int file = openLockFile(path);
  if (file < 0)
    return rt::bad_input("cannot lock " + printable(path) + ": " + std::strerror(errno));
  auto begin = std::chrono::steady_clock::now();
  bool isSaid = false;
  while (flock(file, LOCK_EX | LOCK_NB) != 0) {
    int failure = errno;
    std::string holder = holderIn(file);
    bool isOver = std::chrono::steady_clock::now() - begin >= std::chrono::seconds(seconds);
    if (failure != EWOULDBLOCK || isOver) {
      close(file);
      return rt::bad_input(failure != EWOULDBLOCK
                               ? "cannot lock " + printable(path) + ": " + std::strerror(failure)
                               : holder + " has held the lock " + printable(path) + " for more than " +
                                     std::to_string(seconds) + " s; wait for its end, or end it");
    }
    if (!isSaid)
      waiting(holder);
    isSaid = true;
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  writeHolder(file);
  descriptor = file;
  return {};
}

bool FileLock::tryFile(const std::string &path) {
  release();
  int file = openLockFile(path);
  if (file < 0 || flock(file, LOCK_EX | LOCK_NB) != 0) {
    if (file >= 0)
      close(file);
    return false;
  }
  writeHolder(file);
  descriptor = file;
  return true;
}

bool FileLock::tryFolder(const std::string &path, bool shared) {
  release();
  descriptor = open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
  if (descriptor >= 0 && flock(descriptor, (shared ? LOCK_SH : LOCK_EX) | LOCK_NB) == 0)
    return true;
  release();
  return false;
}

void FileLock::release() {
  if (descriptor >= 0)
    close(descriptor);
  descriptor = -1;
}
