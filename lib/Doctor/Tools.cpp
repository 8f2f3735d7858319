#include "windlass/Doctor/Doctor.h"

#include "windlass/Support/Process.h"
#include "windlass/rt/transport.h"

#include "llvm/ADT/StringRef.h"

#include <cstdlib>

using namespace windlass;
using namespace windlass::doctor;

/// The first line that a program prints of its version, and where it is; nothing where there is no such program.
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
