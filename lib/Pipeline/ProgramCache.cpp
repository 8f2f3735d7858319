#include "windlass/Pipeline/ProgramCache.h"

#include "BuildProgress.h"

#include "windlass/Support/Diagnostics.h"
#include "windlass/Support/Printable.h"
#include "windlass/Support/Process.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/SHA256.h"
#include "llvm/Support/raw_ostream.h"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <thread>
#include <unistd.h>

using namespace windlass;
namespace fs = llvm::sys::fs;

namespace {

/// Holds the lock of one entry, so that two runs do not build it at once.
class EntryLock {
public:
  explicit EntryLock(const std::string &path) : descriptor(open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600)) {
    if (descriptor >= 0)
      flock(descriptor, LOCK_EX);
  }
  ~EntryLock() {
    if (descriptor >= 0)
      close(descriptor);
  }
  bool isHeld() const { return descriptor >= 0; }

private:
  int descriptor;
};

std::string hashOf(llvm::ArrayRef<llvm::StringRef> parts) {
  llvm::SHA256 hash;
  for (llvm::StringRef part : parts) {
    // The length first: no two lists of parts may give one stream.
    hash.update(std::to_string(part.size()) + ":");
    hash.update(part);
  }
  return llvm::toHex(hash.final(), /*LowerCase=*/true);
}

std::string hashFiles(const cpp::ProjectFiles &files) {
  llvm::SmallVector<llvm::StringRef> parts;
  for (const auto &[path, text] : files) {
    parts.push_back(path);
    parts.push_back(text);
  }
  return hashOf(parts);
}

/// The folder of all entries, made where it is missing; it must belong to the user and be closed to others.
rt::status openRoot(std::string &root) {
  const char *base = std::getenv("XDG_CACHE_HOME");
  const char *home = std::getenv("HOME");
  if (base && base[0] == '/')
    root = base;
  else if (home && home[0] == '/')
    root = std::string(home) + "/.cache";
  else
    return rt::bad_input("no folder for built programs: set HOME or XDG_CACHE_HOME to an absolute path");
  fs::create_directories(root);
  root += "/windlass";
  if (mkdir(root.c_str(), 0700) != 0 && errno != EEXIST)
    return rt::bad_input("cannot make the folder of built programs " + printable(root) + ": " + std::strerror(errno));
  struct stat info;
  if (lstat(root.c_str(), &info) != 0 || !S_ISDIR(info.st_mode) || info.st_uid != geteuid())
    return rt::bad_input(printable(root) + " must be a folder of your own; remove it or set XDG_CACHE_HOME");
  chmod(root.c_str(), 0700);
  return {};
}

/// What is asked of every build besides CMake's defaults.
std::vector<std::string> buildDefinitions() {
#ifdef WINDLASS_SANITIZE
  return {"-DWINDLASS_SANITIZE=ON"};
#else
  return {};
#endif
}

/// The compiler that CMake will take, and its version text.
std::string describeCompiler() {
  const char *chosen = std::getenv("CXX");
  std::string compiler = findProgram(chosen && *chosen ? chosen : "c++");
  return compiler.empty() ? "" : compiler + "\n" + captureOutput({compiler, "--version"});
}

/// The processor: code built for one may not run on another that shares the folder.
std::string describeProcessor() {
  auto text = llvm::MemoryBuffer::getFileAsStream("/proc/cpuinfo");
  if (!text)
    return "";
  for (llvm::StringRef rest = (*text)->getBuffer(); !rest.empty();) {
    auto [line, next] = rest.split('\n');
    if (line.starts_with("flags"))
      return line.str();
    rest = next;
  }
  return "";
}

std::string tailOf(const std::string &path) {
  auto text = llvm::MemoryBuffer::getFile(path);
  return text ? (*text)->getBuffer().take_back(3000).str() : "";
}

/// Configures and builds `what` with CMake; the output goes to `folder/build.log`.
rt::status runCMake(const BuildProgress &progress, const std::string &what, const std::string &folder,
                    const std::string &source, llvm::ArrayRef<std::string> definitions) {
  std::string log = folder + "/build.log";
  std::string cmake = findProgram("cmake");
  if (cmake.empty())
    return rt::bad_input("building a training program needs CMake: install the package cmake").as(Code::build_tools);
  std::vector<std::string> configure = {cmake, "-S", source, "-B", folder + "/build", "-DCMAKE_BUILD_TYPE=Release"};
  if (!findProgram("ninja").empty()) {
    configure.push_back("-G");
    configure.push_back("Ninja");
  }
  llvm::append_range(configure, buildDefinitions());
  llvm::append_range(configure, definitions);
  std::string jobs = std::to_string(std::max(1u, std::thread::hardware_concurrency()));
  auto run = [&](const std::vector<std::string> &words) -> rt::status {
    ProcessResult result = runProcess(words, log);
    if (!result.error.empty())
      return rt::bad_input(result.error).as(Code::build_tools);
    if (result.code == 0)
      return {};
    return rt::internal_error("the training program did not build (exit code " + std::to_string(result.code) +
                              "); above is the end of " + printable(log))
        .as(Code::build);
  };
  rt::status built = progress.during("configuring " + what, log, [&] { return run(configure); });
  if (built.is_ok())
    built = progress.during("compiling " + what, log,
                            [&] { return run({cmake, "--build", folder + "/build", "-j", jobs}); });
  if (!built.is_ok() && built.kind() == Code::build)
    llvm::errs() << tailOf(log);
  return built;
}

rt::status writeMark(const std::string &folder) {
  std::error_code error;
  {
    llvm::raw_fd_ostream out(folder + "/.complete.tmp", error);
    if (!error)
      out << "built\n";
    if (error || out.has_error()) {
      out.clear_error();
      return rt::bad_input("cannot write into " + printable(folder));
    }
  }
  if (fs::rename(folder + "/.complete.tmp", folder + "/complete"))
    return rt::bad_input("cannot write into " + printable(folder));
  return {};
}

/// Makes an entry by `build` unless it is complete.
rt::status makeEntry(const std::string &folder, const std::function<rt::status()> &build) {
  EntryLock lock(folder + ".lock");
  if (!lock.isHeld())
    return rt::bad_input("cannot lock " + printable(folder));
  if (fs::exists(folder + "/complete"))
    return {};
  fs::remove_directories(folder);
  if (mkdir(folder.c_str(), 0700) != 0)
    return rt::bad_input("cannot make " + printable(folder) + ": " + std::strerror(errno));
  WINDLASS_TRY(build());
  return writeMark(folder);
}

} // namespace

rt::status windlass::buildProgram(const cpp::ProjectFiles &files, llvm::StringRef dataKey,
                                  const std::function<std::string(const std::string &)> &writeData, bool verbose,
                                  bool showsProgress, std::string &folder) {
  std::string root;
  WINDLASS_TRY(openRoot(root).as(Code::program_cache));
  std::string compiler = describeCompiler();
  if (compiler.empty())
    return rt::bad_input("building a training program needs a C++ compiler: install the package g++, or set CXX")
        .as(Code::build_tools);
  cpp::ProjectFiles runtime;
  for (const auto &[path, text] : files)
    if (llvm::StringRef(path).starts_with("runtime/"))
      runtime[path] = text;
  std::string environment = hashOf({compiler, describeProcessor(), llvm::join(buildDefinitions(), " ")});
  std::string runtimeFolder = root + "/runtime-" + hashOf({hashFiles(runtime), environment}).substr(0, 32);
  folder = root + "/program-" + hashOf({hashFiles(files), environment, dataKey}).substr(0, 32);
  if (verbose)
    llvm::errs() << "building in '" << folder << "'\n";
  auto write = [](const std::string &error) { return error.empty() ? rt::ok_status() : rt::bad_input(error); };
  BuildProgress progress(showsProgress);
  auto buildRuntime = [&]() -> rt::status {
    WINDLASS_TRY(write(cpp::writeProject(runtime, runtimeFolder)));
    return runCMake(progress, "the runtime (for this and later programs)", runtimeFolder, runtimeFolder + "/runtime",
                    {});
  };
  WINDLASS_TRY(makeEntry(runtimeFolder, buildRuntime).as(Code::program_cache));
  auto buildEntry = [&]() -> rt::status {
    WINDLASS_TRY(write(cpp::writeProject(files, folder)));
    WINDLASS_TRY(write(writeData(folder)));
    return runCMake(progress, "the program", folder, folder, {"-DWINDLASS_RUNTIME_BUILD=" + runtimeFolder + "/build"});
  };
  return makeEntry(folder, buildEntry).as(Code::program_cache);
}
