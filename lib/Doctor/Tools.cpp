#include "windlass/Doctor/Doctor.h"

#include "windlass/Support/LauncherVariables.h"
#include "windlass/Support/Printable.h"
#include "windlass/Support/Process.h"
#include "windlass/rt/transport.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringRef.h"

#include <cstdlib>
#include <unistd.h>

using namespace windlass;
using namespace windlass::doctor;

/// Returns the first line that a program prints as its version, and where it is; nothing where there is no such
/// program.
static std::string describe(const std::string &name) {
  std::string path = findProgram(name);
  if (path.empty())
    return "";
  llvm::StringRef text;
  std::string output = captureOutput({path, "--version"});
  text = llvm::StringRef(output).ltrim().split('\n').first.take_front(120);
  return text.empty() ? path : path + ", " + text.str();
}

static Finding findTool(std::string name, const std::string &program, std::string loss, std::optional<Code> needed) {
  Finding finding = {std::move(name), State::present, describe(program), "", needed};
  if (finding.found.empty()) {
    finding.state = State::missing;
    finding.loss = std::move(loss);
  }
  return finding;
}

void doctor::examineTools(std::vector<Finding> &findings) {
  const char *chosen = std::getenv("CXX");
  findings.push_back(findTool("C++ compiler", chosen && *chosen ? chosen : "c++",
                              "emitted programs cannot be built here: install g++, or set CXX", Code::build_tools));
  findings.push_back(
      findTool("CMake", "cmake", "emitted programs cannot be built here: install cmake", Code::build_tools));
  findings.push_back(
      findTool("Ninja", "ninja", "programs are built with make, which is slower: install ninja-build", std::nullopt));
  Finding mpi = findTool("MPI", "mpirun",
                         "several ranks run as threads of one process only (--communicator local): install "
                         "openmpi-bin and libopenmpi-dev",
                         std::nullopt);
  if (mpi.state == State::present && findProgram("mpicxx").empty()) {
    mpi.state = State::limited;
    mpi.loss = "programs are built without MPI, so that ranks are threads of one process: install libopenmpi-dev";
  }
  findings.push_back(mpi);
}

/// Returns whether the variable changes which libraries a process loads, or which of their code runs.
static bool changesWhatIsLoaded(llvm::StringRef name) {
  // LD_RUN_PATH is the linker's.
  if (name.starts_with("LD_") && name != "LD_RUN_PATH")
    return true;
  return llvm::is_contained({"GLIBC_TUNABLES", "OPENBLAS_CORETYPE", "OPENBLAS_VERBOSE", "BLIS_ARCH_TYPE", "MKL_CBWR",
                             "NVIDIA_TF32_OVERRIDE", "CUBLAS_WORKSPACE_CONFIG", "CUDA_FORCE_PTX_JIT"},
                            name);
}

void doctor::examineEnvironment(std::vector<Finding> &findings) {
  std::vector<std::string> loading, launching;
  for (char **entry = environ; *entry; ++entry) {
    auto [name, value] = llvm::StringRef(*entry).split('=');
    if (changesWhatIsLoaded(name) && !value.empty())
      loading.push_back(name.str() + "=" + printable(value));
    else if (isLauncherVariable(name))
      launching.push_back(name.str());
  }
  llvm::sort(loading);
  llvm::sort(launching);
  Finding libraries = {"library variables", State::present, "none is set", "", std::nullopt};
  if (!loading.empty()) {
    libraries.state = State::limited;
    libraries.found = llvm::join(loading, ", ");
    libraries.loss = "programs load what these name, and no check of theirs covers it: unset them where results differ";
  }
  findings.push_back(libraries);
  Finding launcher = {"launcher variables", State::present, "none is set", "", std::nullopt};
  if (!launching.empty()) {
    launcher.state = State::limited;
    launcher.found = llvm::join(launching, ", ");
    launcher.loss =
        "an MPI launcher has set these: windlass leaves them out, but a program that is started by hand takes "
        "itself for a rank of that job";
  }
  findings.push_back(launcher);
}
