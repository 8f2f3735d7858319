#include "run_lock.h"

#include "windlass/rt/file.h"

#include "record.h"

#include <cerrno>
#include <system_error>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

namespace windlass::rt {

namespace {

/// Returns who wrote itself into a lock file.
std::string holder_in(int file) {
  char text[128];
  const ssize_t length = ::pread(file, text, sizeof text, 0);
  const std::string_view line(text, length > 0 ? static_cast<std::size_t>(length) : 0);
  return line.empty() ? "another process" : quote(line.substr(0, line.find('\n')));
}

} // namespace

run_lock::~run_lock() {
  if (file_ >= 0)
    ::close(file_);
}

status run_lock::take(const std::string &run) {
  if (file_ >= 0)
    return ok_status();
  const std::string name = ".lock";
  folder in;
  WINDLASS_TRY(in.open(run).as(diagnostic::output));
  const std::string path = in.path_of(name);
  int file = -1;
  for (bool is_ours = false; !is_ours;) {
    file = ::openat(in.descriptor(), name.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666);
    if (file < 0)
      return bad_input("cannot create " + quote(path) + ": " + std::generic_category().message(errno))
          .as(diagnostic::output);
    if (::flock(file, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
      const std::string holder = holder_in(file);
      ::close(file);
      return bad_input("-o " + quote(run) + " is in use by " + holder + "; wait for its end or choose another folder")
          .as(diagnostic::run_in_use);
    }
    // A file that has another name too, as in a copy by hard links, is not ours to write.
    struct stat info = {};
    is_ours = ::fstat(file, &info) != 0 || info.st_nlink <= 1;
    if (!is_ours) {
      ::close(file);
      WINDLASS_TRY(in.remove(name).as(diagnostic::output));
    }
  }
  // File systems without locks are used without one.
  file_ = file;
  const std::string text = "process " + std::to_string(::getpid()) + " on " + describe_rank().host + "\n";
  if (::ftruncate(file, 0) != 0 || ::pwrite(file, text.data(), text.size(), 0) < 0)
    return bad_input("cannot write " + quote(path) + ": " + std::generic_category().message(errno))
        .as(diagnostic::output);
  return ok_status();
}

} // namespace windlass::rt
