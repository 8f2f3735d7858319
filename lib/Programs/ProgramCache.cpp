#include "windlass/Programs/ProgramCache.h"

#include "BuildEnvironment.h"
#include "BuildProgress.h"
#include "windlass/Programs/ProgramStore.h"

#include "windlass/Support/Diagnostics.h"
#include "windlass/Support/Printable.h"
#include "windlass/Support/Process.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"

#include <thread>

using namespace windlass;
namespace fs = llvm::sys::fs;

namespace {

std::string hashFiles(const cpp::ProjectFiles &files) {
  llvm::SmallVector<llvm::StringRef> parts;
  for (const auto &[path, text] : files) {
    parts.push_back(path);
    parts.push_back(text);
  }
  return hashOf(parts);
}

std::string tailOf(const std::string &path) {
  auto text = llvm::MemoryBuffer::getFile(path);
  return text ? (*text)->getBuffer().take_back(3000).str() : "";
}

/// Configures and builds `what` with CMake; the output goes to `folder/build.log`.
rt::status runCMake(const BuildEvents &events, const std::string &what, const std::string &folder,
                    const std::string &source, llvm::ArrayRef<std::string> definitions) {
  std::string log = folder + "/build.log";
  std::string cmake = findProgram("cmake");
  if (cmake.empty())
    return rt::bad_input("building a training program needs CMake: install the package cmake").as(Code::build_tools);
  std::vector<std::string> configure = {cmake, "-S", source, "-B", folder + "/build"};
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
  rt::status built = tellProgress(events, "configuring " + what, log, [&] { return run(configure); });
  if (built.is_ok())
    built = tellProgress(events, "compiling " + what, log,
                         [&] { return run({cmake, "--build", folder + "/build", "-j", jobs}); });
  if (!built.is_ok() && built.kind() == Code::build && events.log)
    events.log(tailOf(log));
  return built;
}

rt::status asStatus(const std::string &error) { return error.empty() ? rt::ok_status() : rt::bad_input(error); }

std::vector<std::string> pathsOf(const cpp::ProjectFiles &files) {
  std::vector<std::string> paths;
  for (const auto &[path, text] : files)
    paths.push_back(path);
  return paths;
}

/// Builds the runtime, or finds it built; several programs link one.
class RuntimeStore {
public:
  RuntimeStore(const cpp::ProjectFiles &files, llvm::StringRef environment, const BuildEvents &events)
      : files(files), events(events), name("runtime-" + hashOf({hashFiles(files), environment}).substr(0, 32)) {}

  /// Finds or builds it in `store`.
  rt::status obtainFrom(ProgramStore &store, FileLock &use, std::string &folder) const {
    auto build = [&](const std::string &target, std::vector<std::string> &given,
                     std::vector<std::string> &made) -> rt::status {
      WINDLASS_TRY(asStatus(cpp::writeProject(files, target)));
      given = pathsOf(files);
      made = {"build/libwindlass_runtime.a", "build/windlass_runtime.cmake"};
      return runCMake(events, "the runtime (for this and later programs)", target, target + "/runtime",
                      {"-DCMAKE_BUILD_TYPE=Release"});
    };
    return store.obtain(name, build, events.warning, use, folder);
  }

  /// Finds the runtime that was built with windlass, or else finds or builds one in `store`.
  rt::status obtain(ProgramStore &store, FileLock &use, std::string &folder) const {
    ProgramStore shipped;
    shipped.lookInto(getShippedFolder());
    if (shipped.find(name, use, folder))
      return {};
    return obtainFrom(store, use, folder);
  }

private:
  static std::string getShippedFolder() {
    std::string executable = fs::getMainExecutable(nullptr, nullptr);
    llvm::StringRef prefix = llvm::sys::path::parent_path(llvm::sys::path::parent_path(executable));
    return (prefix + "/lib/windlass").str();
  }

  const cpp::ProjectFiles &files;
  const BuildEvents &events;
  std::string name;
};

rt::status describeTools(std::string &environment) {
  environment = describeBuildEnvironment();
  if (!environment.empty())
    return {};
  return rt::bad_input("building a training program needs a C++ compiler: install the package g++, or set CXX")
      .as(Code::build_tools);
}

} // namespace

rt::status windlass::prepareRuntime(const std::string &folder, const BuildEvents &events) {
  ProgramStore store;
  WINDLASS_TRY((folder.empty() ? store.open() : store.openAt(folder)).as(Code::program_cache));
  std::string environment, place;
  WINDLASS_TRY(describeTools(environment));
  cpp::ProjectFiles files;
  cpp::addRuntime(files);
  FileLock use;
  WINDLASS_TRY(RuntimeStore(files, environment, events).obtainFrom(store, use, place).as(Code::program_cache));
  if (!folder.empty())
    store.trim(0); // removes builds of earlier texts
  return {};
}

rt::status windlass::buildProgram(const ProgramSource &source, const BuildEvents &events, BuiltProgram &built) {
  ProgramStore store;
  WINDLASS_TRY(store.open().as(Code::program_cache));
  std::string environment;
  WINDLASS_TRY(describeTools(environment));
  std::string name =
      "program-" + hashOf({hashFiles(source.files), environment, describeBuildType(), source.dataKey}).substr(0, 32);

  bool hasBuilt = false;
  auto buildEntry = [&](const std::string &folder, std::vector<std::string> &given,
                        std::vector<std::string> &made) -> rt::status {
    hasBuilt = true;
    if (events.note)
      events.note("building in '" + folder + "'");
    FileLock runtimeUse;
    std::string runtimeFolder;
    cpp::ProjectFiles runtimeFiles;
    cpp::addRuntime(runtimeFiles);
    WINDLASS_TRY(RuntimeStore(runtimeFiles, environment, events).obtain(store, runtimeUse, runtimeFolder));
    WINDLASS_TRY(asStatus(cpp::writeProject(source.files, folder)));
    WINDLASS_TRY(asStatus(source.writeData(folder)));
    WINDLASS_TRY(
        runCMake(events, "the program", folder, folder, {"-DWINDLASS_RUNTIME_BUILD=" + runtimeFolder + "/build"}));
    given = pathsOf(source.files);
    made = {"build/" + source.program};
    if (fs::exists(folder + "/params.safetensors")) {
      store.shareValues(folder + "/params.safetensors");
      made.push_back("params.safetensors");
    }
    return {};
  };
  WINDLASS_TRY(store.obtain(name, buildEntry, events.warning, built.use, built.folder).as(Code::program_cache));
  if (!hasBuilt && events.note)
    events.note("built before in '" + built.folder + "'");
  if (hasBuilt)
    store.trim(store.getLimit());
  return {};
}
