// What this machine has of what Windlass can use, and what one loses without the rest.
#ifndef WINDLASS_DOCTOR_DOCTOR_H
#define WINDLASS_DOCTOR_DOCTOR_H

#include "windlass/Support/Diagnostics.h"

#include <optional>
#include <string>
#include <vector>

namespace windlass::doctor {

enum class State { present, limited, missing };

struct Finding {
  std::string name;
  State state = State::present;
  /// The versions, paths and sizes that were found; empty where nothing was found.
  std::string found;
  /// What the user loses where it is limited or missing, and what to do.
  std::string loss;
  /// The error code of a finding without which training is impossible; nothing for others.
  std::optional<Code> needed;
};

/// Examines compilers, CMake and MPI.
void examineTools(std::vector<Finding> &findings);
/// Examines MLIR, the libraries that multiply matrices, GPUs and NCCL.
void examineLibraries(std::vector<Finding> &findings);
/// Examines processors, memory, shared memory and disk.
void examineMachine(std::vector<Finding> &findings);
/// Examines variables that change which libraries programs load, and those that a launcher has left.
void examineEnvironment(std::vector<Finding> &findings);

} // namespace windlass::doctor

#endif
