#include "windlass/Doctor/Doctor.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/MemoryBuffer.h"

#include <cstdlib>
#include <sched.h>
#include <sys/statvfs.h>
#include <unistd.h>

using namespace windlass;
using namespace windlass::doctor;

static std::string readAll(const char *path) {
  auto text = llvm::MemoryBuffer::getFileAsStream(path);
  return text ? (*text)->getBuffer().str() : "";
}

/// Returns the value of the first line "key: value".
static llvm::StringRef valueOf(llvm::StringRef text, llvm::StringRef key) {
  while (!text.empty()) {
    auto [line, rest] = text.split('\n');
    auto [name, value] = line.split(':');
    if (name.trim() == key)
      return value.trim();
    text = rest;
  }
  return "";
}

static std::string gibibytes(double bytes) { return llvm::formatv("{0:f1} GiB", bytes / double(1 << 30)).str(); }

static Finding describeProcessors() {
  cpu_set_t set;
  CPU_ZERO(&set);
  int usable = sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
  std::string text = readAll("/proc/cpuinfo");
  llvm::SmallVector<llvm::StringRef> flags;
  valueOf(text, "flags").split(flags, ' ');
  std::string vectors = llvm::is_contained(flags, "avx512f") ? "AVX-512"
                        : llvm::is_contained(flags, "avx2")  ? "AVX2"
                                                             : "";
  Finding finding = {"processors", State::present,
                     std::to_string(usable) + " of " + valueOf(text, "model name").str() +
                         (vectors.empty() ? "" : ", " + vectors),
                     "", std::nullopt};
#if defined(__x86_64__)
  if (vectors.empty()) {
    finding.state = State::limited;
    finding.loss = "without AVX2 kernels run at a fraction of the speed";
  }
#endif
  return finding;
}

static Finding describeMemory() {
  std::string text = readAll("/proc/meminfo");
  auto bytesOf = [&](llvm::StringRef key) {
    int64_t kibibytes = 0;
    valueOf(text, key).split(' ').first.getAsInteger(10, kibibytes);
    return double(kibibytes) * 1024;
  };
  double total = bytesOf("MemTotal"), available = bytesOf("MemAvailable");
  Finding finding = {"memory", State::present, gibibytes(total) + ", " + gibibytes(available) + " available", "",
                     std::nullopt};
  int64_t limit = 0;
  if (!llvm::StringRef(readAll("/sys/fs/cgroup/memory.max")).trim().getAsInteger(10, limit) && double(limit) < total) {
    finding.state = State::limited;
    finding.found += ", a limit of " + gibibytes(double(limit)) + " for this group of processes";
    finding.loss = "plans count on the whole memory: give --memory-limit";
  }
  return finding;
}

/// Returns the free bytes below a folder, or below the nearest folder above it that exists.
static double freeBytes(std::string folder, double &total) {
  struct statvfs info;
  while (statvfs(folder.c_str(), &info) != 0) {
    size_t slash = folder.rfind('/');
    if (slash == std::string::npos || folder == "/")
      return total = 0;
    folder = slash == 0 ? "/" : folder.substr(0, slash);
  }
  total = double(info.f_blocks) * double(info.f_frsize);
  return double(info.f_bavail) * double(info.f_frsize);
}

static Finding describeSpace(std::string name, const std::string &folder, double enough, std::string loss) {
  double total = 0, free = freeBytes(folder, total);
  Finding finding = {std::move(name), State::present,
                     gibibytes(free) + " free of " + gibibytes(total) + " at " + folder, "", std::nullopt};
  if (free < enough) {
    finding.state = total == 0 ? State::missing : State::limited;
    finding.loss = std::move(loss);
  }
  return finding;
}

void doctor::examineMachine(std::vector<Finding> &findings) {
  findings.push_back(describeProcessors());
  findings.push_back(describeMemory());
  findings.push_back(describeSpace("shared memory", "/dev/shm", 64 << 20,
                                   "ranks on one host exchange through MPI instead, which is slower; give a container "
                                   "more with --shm-size"));
  findings.push_back(describeSpace("disk for runs", ".", double(1) * (1 << 30),
                                   "checkpoints may not fit: a run that cannot save ends with an error"));
  const char *cache = std::getenv("XDG_CACHE_HOME"), *home = std::getenv("HOME");
  std::string folder = cache && cache[0] == '/' ? cache : home && home[0] == '/' ? std::string(home) + "/.cache" : "";
  if (folder.empty())
    findings.push_back({"disk for programs", State::missing, "",
                        "windlass train keeps built programs below HOME or XDG_CACHE_HOME: set one of them",
                        Code::program_cache});
  else
    findings.push_back(describeSpace("disk for programs", folder + "/windlass", double(1) * (1 << 28),
                                     "built programs may not fit: set XDG_CACHE_HOME to another folder"));
}
