#include "windlass/Pipeline/ProgramCache.h"

#include "BuildProgress.h"
#include "ProgramStore.h"

#include "windlass/Support/Diagnostics.h"
#include "windlass/Support/Printable.h"
#include "windlass/Support/Process.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/SHA256.h"
#include "llvm/Support/raw_ostream.h"

#include <cstdlib>
#include <thread>

using namespace windlass;
namespace fs = llvm::sys::fs;

extern char **environ;

namespace {

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

/// What is asked of every build besides CMake's defaults.
std::vector<std::string> buildDefinitions() {
#ifdef WINDLASS_SANITIZE
  return {"-DWINDLASS_SANITIZE=ON"};
#else
  return {};
#endif
}

/// What a program says of its version; nothing where there is none of that name.
std::string describeVersion(const std::string &name) {
  std::string path = findProgram(name);
  return path.empty() ? "" : captureOutput({path, "--version"});
}

/// The compiler that CMake will take, and its version.
std::string describeCompiler() {
  const char *chosen = std::getenv("CXX");
  std::string name = chosen && *chosen ? chosen : "c++", path = findProgram(name);
  return path.empty() ? "" : path + "\n" + describeVersion(name);
}

/// Whether CMake, a compiler or a linker reads the variable, so that another value may give another program.
bool changesBuilds(llvm::StringRef name) {
  if (name.starts_with("CMAKE_"))
    return true;
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

/// The variables that change builds, in order.
std::string describeEnvironment() {
  std::vector<std::string> kept;
  for (char **entry = environ; *entry; ++entry)
    if (changesBuilds(llvm::StringRef(*entry).split('=').first))
      kept.push_back(*entry);
  llvm::sort(kept);
  return llvm::join(kept, "\n");
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

rt::status asStatus(const std::string &error) { return error.empty() ? rt::ok_status() : rt::bad_input(error); }

std::vector<std::string> pathsOf(const cpp::ProjectFiles &files) {
  std::vector<std::string> paths;
  for (const auto &[path, text] : files)
    paths.push_back(path);
  return paths;
}

} // namespace

rt::status windlass::buildProgram(const ProgramSource &source, bool verbose, bool showsProgress, BuiltProgram &built) {
  ProgramStore store;
  WINDLASS_TRY(store.open().as(Code::program_cache));
  std::string compiler = describeCompiler();
  if (compiler.empty())
    return rt::bad_input("building a training program needs a C++ compiler: install the package g++, or set CXX")
        .as(Code::build_tools);
  cpp::ProjectFiles runtime;
  for (const auto &[path, text] : source.files)
    if (llvm::StringRef(path).starts_with("runtime/"))
      runtime[path] = text;
  std::string environment = hashOf({compiler, describeVersion("cmake"), describeVersion("mpirun"),
                                    findProgram("mpicxx"), describeVersion("nvcc"), describeEnvironment(),
                                    describeProcessor(), llvm::join(buildDefinitions(), " ")});
  std::string runtimeName = "runtime-" + hashOf({hashFiles(runtime), environment}).substr(0, 32);
  std::string name = "program-" + hashOf({hashFiles(source.files), environment, source.dataKey}).substr(0, 32);

  BuildProgress progress(showsProgress);
  bool hasBuilt = false;
  auto buildRuntime = [&](const std::string &folder, std::vector<std::string> &given,
                          std::vector<std::string> &made) -> rt::status {
    hasBuilt = true;
    WINDLASS_TRY(asStatus(cpp::writeProject(runtime, folder)));
    given = pathsOf(runtime);
    made = {"build/libwindlass_runtime.a", "build/windlass_runtime.cmake"};
    return runCMake(progress, "the runtime (for this and later programs)", folder, folder + "/runtime", {});
  };
  auto buildEntry = [&](const std::string &folder, std::vector<std::string> &given,
                        std::vector<std::string> &made) -> rt::status {
    hasBuilt = true;
    if (verbose)
      llvm::errs() << "building in '" << folder << "'\n";
    FileLock runtimeUse;
    std::string runtimeFolder;
    WINDLASS_TRY(store.obtain(runtimeName, buildRuntime, runtimeUse, runtimeFolder));
    WINDLASS_TRY(asStatus(cpp::writeProject(source.files, folder)));
    WINDLASS_TRY(asStatus(source.writeData(folder)));
    WINDLASS_TRY(
        runCMake(progress, "the program", folder, folder, {"-DWINDLASS_RUNTIME_BUILD=" + runtimeFolder + "/build"}));
    given = pathsOf(source.files);
    made = {"build/" + source.program};
    if (fs::exists(folder + "/params.safetensors")) {
      store.shareValues(folder + "/params.safetensors");
      made.push_back("params.safetensors");
    }
    return {};
  };
  WINDLASS_TRY(store.obtain(name, buildEntry, built.use, built.folder).as(Code::program_cache));
  if (!hasBuilt && verbose)
    llvm::errs() << "built before in '" << built.folder << "'\n";
  if (hasBuilt)
    store.trim(store.getLimit());
  return {};
}
