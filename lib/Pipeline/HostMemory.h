// What plans take of the hosts' memory.
#ifndef WINDLASS_LIB_PIPELINE_HOSTMEMORY_H
#define WINDLASS_LIB_PIPELINE_HOSTMEMORY_H

#include "windlass/Pipeline/MakeSchedule.h"

namespace windlass {

/// The host's memory that a rank needs, and that it may have.
struct HostNeed {
  /// The bytes of the arena that a rank has in the host's memory; those of the largest one where positions differ.
  int64_t bytes = 0;
  /// The bytes that a rank may have: the host's devices share its memory evenly, and a CPU rank has its other arena and
  /// the reserve there too. Nothing where the cluster does not state the host's memory.
  std::optional<int64_t> part;
  bool fits() const { return bytes == 0 || !part || bytes <= *part; }
};
/// Returns what a rank of the schedule needs, and may have, of the smallest host of the cluster.
HostNeed getHostNeed(Schedule &schedule, const Cluster &cluster);

/// Fails with a diagnostic of kind `memory` where a rank needs more of the host's memory than it may have.
mlir::LogicalResult checkHostMemory(Schedule &schedule, const Cluster &cluster);

} // namespace windlass

#endif
