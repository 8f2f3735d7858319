#include "windlass/Support/OutputFile.h"

#include "windlass/Support/Printable.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

using namespace windlass;

namespace {

/// A descriptor that is closed with this object.
class Descriptor {
public:
  explicit Descriptor(int value = -1) : value(value) {}
  Descriptor(const Descriptor &) = delete;
  Descriptor &operator=(const Descriptor &) = delete;
  ~Descriptor() { reset(); }
  void reset(int next = -1) {
    if (value >= 0)
      close(value);
    value = next;
  }
  int get() const { return value; }
  int release() {
    int held = value;
    value = -1;
    return held;
  }

private:
  int value;
};

std::string systemError(llvm::StringRef verb, llvm::StringRef path) {
  return ("cannot " + verb + " " + printable(path) + ": " + std::strerror(errno)).str();
}

/// Returns a name that nobody can have put a link under.
std::string temporaryName(llvm::StringRef name) {
  uint64_t number = 0;
  while (getrandom(&number, sizeof number, 0) != sizeof number)
    ;
  return ("." + name.take_front(200) + "." + llvm::utohexstr(number, /*LowerCase=*/true) + ".tmp").str();
}

/// Replaces the file `name` of a folder by what `write` gives; `shown` is its path for messages.
std::string replaceAt(int folder, const std::string &name, llvm::StringRef shown, mode_t mode,
                      llvm::function_ref<std::string(llvm::raw_ostream &)> write) {
  std::string temporary;
  Descriptor file;
  do {
    temporary = temporaryName(name);
    file.reset(openat(folder, temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode));
  } while (file.get() < 0 && errno == EEXIST);
  if (file.get() < 0)
    return systemError("write", shown);
  std::string error;
  {
    llvm::raw_fd_ostream out(file.release(), /*shouldClose=*/true);
    error = write(out);
    out.close();
    if (error.empty() && out.has_error())
      error = "cannot write " + printable(shown) + ": " + out.error().message();
    out.clear_error();
  }
  if (error.empty() && renameat(folder, temporary.c_str(), folder, name.c_str()) != 0)
    error = systemError("write", shown);
  if (!error.empty())
    unlinkat(folder, temporary.c_str(), 0);
  return error;
}

/// Returns whether the file `name` of a folder is no link and holds `text`.
bool holds(int folder, const std::string &name, llvm::StringRef text) {
  Descriptor file(openat(folder, name.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  struct stat info;
  if (file.get() < 0 || fstat(file.get(), &info) != 0 || !S_ISREG(info.st_mode) ||
      static_cast<uint64_t>(info.st_size) != text.size())
    return false;
  char buffer[1 << 14];
  while (!text.empty()) {
    ssize_t got = read(file.get(), buffer, sizeof buffer);
    if (got <= 0 || !text.consume_front(llvm::StringRef(buffer, static_cast<size_t>(got))))
      return false;
  }
  return true;
}

} // namespace

std::string windlass::writeFile(llvm::StringRef path, llvm::function_ref<std::string(llvm::raw_ostream &)> write) {
  std::string parent = llvm::sys::path::parent_path(path).str();
  Descriptor folder(open(parent.empty() ? "." : parent.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (folder.get() < 0)
    return systemError("write", path);
  return replaceAt(folder.get(), llvm::sys::path::filename(path).str(), path, 0666, write);
}

std::string windlass::writeFile(llvm::StringRef path, llvm::StringRef text) {
  return writeFile(path, [&](llvm::raw_ostream &out) {
    out << text;
    return std::string();
  });
}

OutputFolder::~OutputFolder() {
  if (descriptor >= 0)
    close(descriptor);
}

std::string OutputFolder::open(llvm::StringRef folder) {
  path = folder.str();
  if (std::error_code failed = llvm::sys::fs::create_directories(folder))
    return "cannot make the folder " + printable(folder) + ": " + failed.message();
  if (descriptor >= 0)
    close(descriptor);
  descriptor = ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  return descriptor < 0 ? systemError("open the folder", path) : "";
}

std::string OutputFolder::write(llvm::StringRef relative, llvm::StringRef text, bool isExecutable) {
  Descriptor inner;
  int folder = descriptor;
  std::string shown = path;
  llvm::StringRef rest = relative;
  while (rest.contains('/')) {
    auto [step, next] = rest.split('/');
    rest = next;
    shown += "/" + step.str();
    if (mkdirat(folder, step.str().c_str(), 0777) != 0 && errno != EEXIST)
      return systemError("make the folder", shown);
    int entered = openat(folder, step.str().c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    struct stat info;
    if (entered < 0 && fstatat(folder, step.str().c_str(), &info, AT_SYMLINK_NOFOLLOW) == 0 && S_ISLNK(info.st_mode))
      return printable(shown) + " is a symbolic link, and " + printable(path) +
             " has to hold that folder itself; put a folder in its place";
    if (entered < 0)
      return systemError("open the folder", shown);
    inner.reset(entered);
    folder = entered;
  }
  if (holds(folder, rest.str(), text))
    return "";
  return replaceAt(folder, rest.str(), path + "/" + relative.str(), isExecutable ? 0777 : 0666,
                   [&](llvm::raw_ostream &out) {
                     out << text;
                     return std::string();
                   });
}

std::string windlass::finishOutput() {
  llvm::outs().flush();
  std::error_code error = llvm::outs().error();
  // LLVM ends a program whose streams have failed with a report of a crash.
  llvm::outs().clear_error();
  llvm::errs().clear_error();
  return !error || error == std::errc::broken_pipe ? "" : "cannot write to standard output: " + error.message();
}
