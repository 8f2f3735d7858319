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
  /// Versions, paths, sizes; empty where nothing was found.
  std::string found;
  /// Of what is limited or missing: what one loses, and what to do.
  std::string loss;
  /// Set where training is not possible at all without it.
  std::optional<Code> needed;
};

/// Compilers, CMake, MPI.
void examineTools(std::vector<Finding> &findings);
/// MLIR, what multiplies matrices, GPUs, NCCL.
void examineLibraries(std::vector<Finding> &findings);
/// Processors, memory, shared memory, disk.
void examineMachine(std::vector<Finding> &findings);
/// Variables that change which libraries programs load, and those that a launcher has left.
void examineEnvironment(std::vector<Finding> &findings);

} // namespace windlass::doctor

#endif
