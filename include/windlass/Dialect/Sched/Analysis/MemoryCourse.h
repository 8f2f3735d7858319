// What device memory holds over the commands of a step.
#ifndef WINDLASS_DIALECT_SCHED_ANALYSIS_MEMORYCOURSE_H
#define WINDLASS_DIALECT_SCHED_ANALYSIS_MEMORYCOURSE_H

#include "windlass/Dialect/Sched/IR/SchedOps.h"

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace windlass::sched {

/// What a rank's device arena holds while the functions of a step run one after another: forward, backward, reduction
/// and update, of each chunk in turn.
struct MemoryCourse {
  /// Bytes of one content, one number for each command.
  struct Layer {
    std::string name;
    std::vector<int64_t> bytes;
  };
  /// First what stays for the whole step, by content; then what the forward pass leaves for the backward pass; then all
  /// other values.
  std::vector<Layer> layers;
  /// The functions with the numbers of their first commands.
  std::vector<std::pair<std::string, size_t>> functions;
};

/// Follows the arena of a program at L5 or L6.
MemoryCourse followMemory(ProgramOp program);

} // namespace windlass::sched

#endif
