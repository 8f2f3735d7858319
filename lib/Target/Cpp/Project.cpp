#include "windlass/Target/Cpp/Project.h"
#include "windlass/Dialect/Sched/IR/Programs.h"
#include "windlass/Dialect/Sched/IR/StepFunctions.h"

#include "ProjectParts.h"

#include "windlass/Support/OutputFile.h"
#include "windlass/Target/Cpp/EmbeddedRuntime.h"
#include "windlass/Target/Cpp/MemoryFile.h"
#include "windlass/Target/Cpp/OperatorNames.h"
#include "windlass/Target/Cpp/ProgramTables.h"
#include "windlass/Target/Cpp/StepSignature.h"

#include "mlir/Dialect/EmitC/IR/EmitC.h"
#include "mlir/Target/Cpp/CppEmitter.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;
using namespace windlass;
using namespace windlass::cpp;

static constexpr char kMain[] = R"(// Starts the training program.
#include "step.h"

int main(int argc, char **argv) { return windlass::rt::run_program(windlass_program::describe(), argc, argv); }
)";

static constexpr char kStepHeader[] = R"(// The functions of the step program, and the tables that name them.
#pragma once

#include "windlass/rt/program.h"

namespace windlass_program {

using namespace windlass::rt;

@functions@
const job &describe();

} // namespace windlass_program
)";

static std::string stepHeader(ModuleOp module) {
  auto [begin, end] = llvm::StringRef(kStepHeader).split("@functions@");
  std::string functions;
  for (sched::ProgramOp program : sched::getPrograms(module)) {
    std::string position = getPositionName(program);
    if (!position.empty())
      functions += "namespace " + position + " {\n";
    for (func::FuncOp function : sched::getStepFunctions(program))
      functions += getStepSignature(sched::getStep(function)).getText([](llvm::StringRef) { return true; }) + ";\n";
    if (!position.empty())
      functions += "} // namespace " + position + "\n";
  }
  return (begin + functions + end).str();
}

/// Returns the sources with the functions of all positions.
static std::string stepSources(ModuleOp module) {
  std::string sources;
  for (sched::ProgramOp program : sched::getPrograms(module)) {
    std::string position = getPositionName(program);
    sources += (sources.empty() ? "src/" : " src/") + (position.empty() ? position : position + "/") + "step.cpp";
  }
  return sources;
}

static constexpr char kCMake[] = R"(cmake_minimum_required(VERSION 3.25)
project(windlass_program LANGUAGES CXX)

if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release)
endif()
# For programs that are to be built soon and not to run long; the runtime is optimized in any case.
set(CMAKE_CXX_FLAGS_QUICK "-O0 -DNDEBUG")
set(CMAKE_CXX_STANDARD 17)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(WINDLASS_BACKEND @backend@ CACHE STRING "cpu, cuda or null")
option(WINDLASS_CUDA_EMULATED "Compile the kernels of cuda for this processor, to test them where no device is" OFF)
# Its headers take long to compile, and only programs with attention call it.
set(WINDLASS_CUDNN @cudnn@ CACHE STRING "Attention by cuDNN too: ON, OFF, or AUTO for where its headers and its frontend's are")
set(is_cuda FALSE)
if(WINDLASS_BACKEND STREQUAL "cuda" AND NOT WINDLASS_CUDA_EMULATED)
  set(is_cuda TRUE)
  if(NOT DEFINED CMAKE_CUDA_ARCHITECTURES)
    set(CMAKE_CUDA_ARCHITECTURES 80-real 90) # A100 and H100, and what comes after by the driver's compiler
  endif()
  enable_language(CUDA)
  set(CMAKE_CUDA_STANDARD 17)
  find_package(CUDAToolkit REQUIRED)
endif()

# The runtime is part of this folder; a build of it that exists already may be named instead.
set(WINDLASS_RUNTIME_BUILD "" CACHE PATH "Build folder of the same runtime")
if(WINDLASS_RUNTIME_BUILD)
  include(${WINDLASS_RUNTIME_BUILD}/windlass_runtime.cmake)
else()
  add_subdirectory(runtime)
endif()

)";

std::string cpp::cmakeText(llvm::StringRef target, llvm::StringRef hostSources, llvm::StringRef kernelSource,
                           llvm::StringRef backend, bool usesAttentionLibrary) {
  auto [before, after] = llvm::StringRef(kCMake).split("@backend@");
  // The same sources serve all back ends: nvcc compiles what has kernels for a device.
  auto [middle, end] = after.split("@cudnn@");
  return (before + backend + middle + (usesAttentionLibrary ? "ON" : "OFF") + end +
          "if(is_cuda)\n  set_source_files_properties(" + kernelSource +
          " PROPERTIES LANGUAGE CUDA)\nendif()\nadd_executable(" + target + " " + hostSources + " " + kernelSource +
          ")\ntarget_link_libraries(" + target + " PRIVATE windlass_runtime)\ntarget_compile_options(" + target +
          " PRIVATE $<$<COMPILE_LANGUAGE:CXX>:-Wall;-Wextra> $<$<COMPILE_LANGUAGE:CUDA>:-Xcompiler=-Wall,-Wextra>)\n"
          "if(CMAKE_BUILD_TYPE STREQUAL \"Quick\")\n  set_target_properties(" +
          target + " PROPERTIES UNITY_BUILD ON)\nendif()\n")
      .str();
}

static constexpr char kReadme[] = R"(# A training program

Emitted by Windlass from an ONNX training graph and a plan (`plan.json`). It needs CMake and a C++17 compiler, and MPI to
run as several processes. With `-DWINDLASS_BACKEND=cuda` it needs nvcc and cuBLASLt, and runs on NVIDIA's GPUs.
cuDNN computes attention of 16 bits: CMake looks for `cudnn.h` and `cudnn_frontend.h` in the toolkit, the system and the
Python packages nvidia-cudnn-cu13 and nvidia-cudnn-frontend (`-DCMAKE_PREFIX_PATH=FOLDER` names another folder above
`include`). `-DWINDLASS_CUDNN=OFF` does without it, several times slower.
With `-DCMAKE_BUILD_TYPE=Quick` it is compiled in a seventh of the time; its element-wise functions run many times slower and
round products and sums apart.

    cmake -S . -B build && cmake --build build
    build/train --help
    ./run.sh --data FILE --steps 100 -o RUN
    ./run.sh --hosts node1:4,node2:4 --data FILE --steps 100 -o RUN

The second form is for several hosts, which have this folder, the data and RUN by the same names; `run.slurm` is for Slurm.

`src/step.cpp` holds every kernel, copy and collective of a step in order, each with its operator of the model;
`src/buffers.h` says where the buffers are that it names, and what they hold; `src/rows.h` what differs between repeated
layers; `src/fused.h` has the fused element-wise functions, `src/tables.cpp` the memory map and the tables of parameters
and inputs; `runtime/` is the library that they call. A program of several positions has the first four for each of them, in
`src/position_0` and so on. Names of the model are in comments, as far as they are letters,
digits, `_` and `.`, and in `src/tables.cpp`. `operators.json` has names of operators as they are, by which `--profile`
labels its timeline; `memory.json` has what the device's memory holds over a step, for the page of a run.
)";

/// The script sets what Open MPI 4.1 needs to run several ranks on few cores, without a network, to let them save when
/// they are told to end, and to notice within 15 s that a host is gone. Ranks with neighbouring numbers share a host,
/// as plans have it.
std::string cpp::runScript(int64_t ranks, llvm::StringRef target) {
  std::string head = R"sh(#!/bin/sh
# Runs the program on its ranks; all flags are handed on.
)sh",
              usage = R"sh(#   run.sh FLAGS...                    on this machine, or on what Slurm has allocated
#   run.sh --hosts A:4,B:4 FLAGS...    on these hosts, with as many ranks, over SSH
)sh";
  // A shell takes an empty file for a script that succeeds.
  std::string check = R"sh(set -eu
here=$(CDPATH= cd -- "$(dirname -- "$0")" && pwd)
program=$here/build/)sh" +
                      target.str() +
                      R"sh(
if ! [ -s "$program" ]; then
  echo "error: $program is missing or empty; build it with cmake -S $here -B $here/build and cmake --build $here/build" >&2
  exit 1
fi
)sh";
  if (ranks == 1)
    return head + check + "exec \"$program\" \"$@\"\n";
  return head + usage + check + R"sh(hosts=
if [ "${1-}" = --hosts ]; then hosts=${2-}; shift 2; fi
set -- "$program" "$@"
if [ -n "$hosts" ]; then
  # ssh must not ask anything. Another agent has flags of its own.
  [ -n "${OMPI_MCA_plm_rsh_agent-}" ] || set -- --mca plm_rsh_args '-o BatchMode=yes -o ConnectTimeout=10' "$@"
  set -- --host "$hosts" "$@"
fi
[ "$(id -u)" != 0 ] || set -- --allow-run-as-root "$@"
exec mpirun -n )sh" +
         std::to_string(ranks) + R"sh( --map-by slot:OVERSUBSCRIBE --bind-to none --mca mpi_yield_when_idle 1 \
  --mca odls_base_sigkill_timeout 3 --mca btl_vader_single_copy_mechanism none \
  --mca oob_tcp_keepalive_time 5 --mca oob_tcp_keepalive_intvl 2 --mca oob_tcp_keepalive_probes 4 "$@"
)sh";
}

/// mpirun starts the ranks of the allocation by srun.
static std::string slurmScript(int64_t ranks) {
  return "#!/bin/sh\n#SBATCH --ntasks=" + std::to_string(ranks) +
         "\n#SBATCH --job-name=windlass\n"
         "# Two minutes before its time is over, the run saves and ends.\n"
         "#SBATCH --signal=B:USR1@120\n"
         "# sbatch --nodes=N run.slurm FLAGS..., in the program's folder, which all nodes see\nset -eu\n"
         "exec \"$SLURM_SUBMIT_DIR/run.sh\" \"$@\"\n";
}

LogicalResult cpp::addSources(ModuleOp module, ProjectFiles &files) {
  for (auto file : module.getOps<emitc::FileOp>()) {
    std::string text;
    llvm::raw_string_ostream out(text);
    if (failed(emitc::translateToCpp(file, out, /*declareVariablesAtTop=*/false, file.getId())))
      return failure();
    files["src/" + file.getId().str()] = text;
  }
  return success();
}

void cpp::addRuntime(ProjectFiles &files) {
  for (const EmbeddedFile &file : getEmbeddedRuntime())
    files["runtime/" + file.path.str()] = file.text.str();
}

FailureOr<ProjectFiles> cpp::makeProject(ModuleOp module, const ProjectOptions &options) {
  ProjectFiles files;
  if (failed(sched::checkPrograms(module)) || failed(addSources(module, files)))
    return failure();
  auto tables = writeProgramTables(module, options);
  if (failed(tables))
    return failure();
  files["src/tables.cpp"] = *tables;
  files["src/step.h"] = stepHeader(module);
  files["src/main.cpp"] = kMain;
  files["CMakeLists.txt"] = cmakeText("train", "src/main.cpp src/tables.cpp", stepSources(module), options.backend,
                                      !options.attentions.empty());
  files["README.md"] = kReadme;
  files["plan.json"] = options.planJson;
  files["operators.json"] = writeOperatorNames(module);
  files["memory.json"] = writeMemoryCourses(module);
  files["run.sh"] = runScript(options.ranks, "train");
  files["run.slurm"] = slurmScript(options.ranks);
  addRuntime(files);
  return files;
}

std::string cpp::writeProject(const ProjectFiles &files, llvm::StringRef folder) {
  namespace fs = llvm::sys::fs;
  if (fs::exists(folder) && !fs::is_directory(folder))
    return "'" + folder.str() + "' is not a folder; give another one with -o";
  std::error_code error;
  fs::directory_iterator first(folder, error);
  if (!error && first != fs::directory_iterator() && !fs::exists(folder + "/plan.json"))
    return "'" + folder.str() + "' holds files that are no emitted project; give an empty folder with -o";
  OutputFolder output;
  if (std::string failed = output.open(folder); !failed.empty())
    return failed;
  for (const auto &[relative, text] : files)
    if (std::string failed = output.write(relative, text, llvm::StringRef(relative).ends_with(".sh")); !failed.empty())
      return failed;
  return "";
}
