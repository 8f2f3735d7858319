#include "BuildEnvironment.h"

#include "windlass/Support/Process.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/SHA256.h"

#include <cstdlib>

using namespace windlass;

extern char **environ;

std::string windlass::hashOf(llvm::ArrayRef<llvm::StringRef> parts) {
  llvm::SHA256 hash;
  for (llvm::StringRef part : parts) {
    // The length comes first, so that no two lists of parts give one stream.
    hash.update(std::to_string(part.size()) + ":");
    hash.update(part);
  }
  return llvm::toHex(hash.final(), /*LowerCase=*/true);
}

std::vector<std::string> windlass::buildDefinitions() {
#ifdef WINDLASS_SANITIZE
  return {"-DWINDLASS_SANITIZE=ON"};
#else
  return {};
#endif
}

namespace {

constexpr llvm::StringLiteral kBuildType = "CMAKE_BUILD_TYPE";

/// Returns what a program prints as its version; nothing where there is no program of that name.
std::string describeVersion(const std::string &name) {
  std::string path = findProgram(name);
  return path.empty() ? "" : captureOutput({path, "--version"});
}

/// Returns the compiler that CMake will take, and its version.
std::string describeCompiler() {
  const char *chosen = std::getenv("CXX");
  std::string name = chosen && *chosen ? chosen : "c++", path = findProgram(name);
  return path.empty() ? "" : path + "\n" + describeVersion(name);
}

/// Returns whether CMake, a compiler or a linker reads the variable, so that another value may give another program.
bool changesBuilds(llvm::StringRef name) {
  if (name.starts_with("CMAKE_"))
    return !name.ends_with("_COMPILER_LAUNCHER"); // a cache of compilations
  static constexpr llvm::StringLiteral names[] = {
      "CC",
      "CFLAGS",
      "CPPFLAGS",
      "CXX",
      "CXXFLAGS",
      "LDFLAGS",
      "CUDACXX",
      "CUDAFLAGS",
      "CUDAHOSTCXX",
      "CUDAARCHS",
      "CUDA_PATH",
      "NVCC_PREPEND_FLAGS",
      "NVCC_CCBIN",
      "MPI_HOME",
      "NVCC_APPEND_FLAGS",
      "MPI_ROOT",
      "OpenMP_ROOT",
      "CUDAToolkit_ROOT",
      "CPATH",
      "C_INCLUDE_PATH",
      "LIBRARY_PATH",
      "LD_RUN_PATH",
      "OMPI_CXX",
      "CPLUS_INCLUDE_PATH",
      "OMPI_CPPFLAGS",
      "OMPI_CXXFLAGS",
      "COMPILER_PATH",
      "MPICH_CXX",
      "OMPI_LDFLAGS",
      "GCC_EXEC_PREFIX",
      "OPAL_PREFIX",
      "VIRTUAL_ENV",
  };
  return llvm::is_contained(names, name);
}

/// Returns the variables that change builds, in order. The build type is left out: it matters to programs only.
std::string describeVariables() {
  std::vector<std::string> kept;
  for (char **entry = environ; *entry; ++entry) {
    llvm::StringRef name = llvm::StringRef(*entry).split('=').first;
    if (name != kBuildType && changesBuilds(name))
      kept.push_back(*entry);
  }
  llvm::sort(kept);
  return llvm::join(kept, "\n");
}

/// Returns the processor: code built for one may not run on another that shares the folder.
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

} // namespace

std::string windlass::describeBuildEnvironment() {
  std::string compiler = describeCompiler();
  if (compiler.empty())
    return "";
  return hashOf({compiler, describeVersion("cmake"), describeVersion("mpirun"), findProgram("mpicxx"),
                 describeVersion("nvcc"), describeVariables(), describeProcessor(),
                 llvm::join(buildDefinitions(), " ")});
}

std::string windlass::describeBuildType() {
  const char *type = std::getenv(kBuildType.data());
  return type ? type : "";
}
