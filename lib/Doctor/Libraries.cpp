// Libraries are examined by opening them: what a package manager reports does not tell what a program will find.
#include "windlass/Doctor/Doctor.h"

#include "windlass/Support/Process.h"
#include "windlass/rt/backend.h"

#include "llvm/ADT/StringRef.h"
#include "llvm/Config/llvm-config.h"
#include "llvm/Support/FormatVariadic.h"

#include <dlfcn.h>

using namespace windlass;
using namespace windlass::doctor;

namespace {

/// A library that stays open while this object lives.
class Library {
public:
  explicit Library(const char *name) : handle(dlopen(name, RTLD_NOW | RTLD_LOCAL)) {}
  Library(const Library &) = delete;
  ~Library() {
    if (handle)
      dlclose(handle);
  }
  bool isOpen() const { return handle != nullptr; }
  template <class Function> Function *find(const char *name) const {
    return reinterpret_cast<Function *>(dlsym(handle, name));
  }

private:
  void *handle;
};

Finding describeGemm() {
  rt::backend_facts facts = rt::describe_backend();
  Finding finding = {"GEMM", State::present, facts.gemm, "", Code::backend};
  if (!facts.result.is_ok()) {
    finding.state = State::missing;
    finding.loss = "nothing trains on CPUs: " + facts.result.message();
    return finding;
  }
  // The cores that OpenBLAS falls back to where it does not know the processor.
  for (llvm::StringRef old : {"Prescott", "Core2", "Penryn", "Dunnington", "Nehalem", "Generic", "generic"})
    if (llvm::StringRef(facts.gemm).ends_with(old)) {
      finding.state = State::limited;
      finding.loss = "these kernels use none of the wide vectors of newer processors: expect a fraction of the speed";
    }
  return finding;
}

/// The GPUs by CUDA's driver interface. Its functions return 0 for success.
Finding describeGpus() {
  Finding finding = {"GPUs", State::missing, "", "emitted programs run on CPUs only", std::nullopt};
  Library driver("libcuda.so.1");
  if (!driver.isOpen())
    return finding;
  auto *init = driver.find<int(unsigned)>("cuInit");
  auto *count = driver.find<int(int *)>("cuDeviceGetCount");
  auto *get = driver.find<int(int *, int)>("cuDeviceGet");
  auto *name = driver.find<int(char *, int, int)>("cuDeviceGetName");
  auto *memory = driver.find<int(size_t *, int)>("cuDeviceTotalMem_v2");
  int devices = 0;
  if (!init || !count || !get || !name || !memory || init(0) != 0 || count(&devices) != 0) {
    finding.loss = "the NVIDIA driver is installed but does not answer: " + finding.loss;
    return finding;
  }
  for (int i = 0; i < devices; ++i) {
    int device = 0;
    char text[128] = {};
    size_t bytes = 0;
    if (get(&device, i) != 0 || name(text, sizeof text - 1, device) != 0 || memory(&bytes, device) != 0)
      continue;
    finding.found += (finding.found.empty() ? "" : "; ") + std::string(text) +
                     llvm::formatv(", {0:f0} GiB", double(bytes) / double(1 << 30)).str();
  }
  if (!finding.found.empty()) {
    finding.state = State::present;
    finding.loss.clear();
  }
  return finding;
}

Finding describeCuda() {
  std::string path = findProgram("nvcc");
  if (path.empty())
    return {"CUDA", State::missing, "", "no programs for GPUs can be built", std::nullopt};
  std::string text = captureOutput({path, "--version"});
  auto [before, release] = llvm::StringRef(text).split("release ");
  return {"CUDA", State::present, path + (release.empty() ? "" : ", " + release.split(',').first.str()), "",
          std::nullopt};
}

/// Returns the text of a version that NVIDIA's libraries give as one number, such as 9.19.0 of 91900.
std::string versionText(size_t number) {
  return llvm::formatv("{0}.{1}.{2}", number / 10000, number / 100 % 100, number % 100).str();
}

/// Emitted programs open the library by this name too, or where CMake found its headers.
Finding describeCudnn() {
  Library library("libcudnn.so.9");
  auto *get = library.isOpen() ? library.find<size_t()>("cudnnGetVersion") : nullptr;
  if (!get)
    return {"cuDNN", State::missing, "",
            "attention on GPUs is several times slower, unless CMake finds the Python package nvidia-cudnn-cu13",
            std::nullopt};
  return {"cuDNN", State::present, versionText(get()), "", std::nullopt};
}

Finding describeNccl() {
  Library library("libnccl.so.2");
  int version = 0;
  auto *get = library.isOpen() ? library.find<int(int *)>("ncclGetVersion") : nullptr;
  if (!get || get(&version) != 0)
    return {"NCCL", State::missing, "", "several GPUs cannot exchange directly", std::nullopt};
  return {"NCCL", State::present, versionText(version), "", std::nullopt};
}

} // namespace

void doctor::examineLibraries(std::vector<Finding> &findings) {
  // The compiler links it, so it is there.
  findings.push_back({"MLIR", State::present, LLVM_VERSION_STRING, "", std::nullopt});
  findings.push_back(describeGemm());
  findings.push_back(describeGpus());
  findings.push_back(describeCuda());
  findings.push_back(describeCudnn());
  findings.push_back(describeNccl());
}
