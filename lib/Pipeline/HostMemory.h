// What plans take of the hosts' memory.
#ifndef WINDLASS_LIB_PIPELINE_HOSTMEMORY_H
#define WINDLASS_LIB_PIPELINE_HOSTMEMORY_H

#include "windlass/Pipeline/MakeSchedule.h"

namespace windlass {

/// What a plan takes of a host's memory.
struct HostNeed {
  /// The bytes of a rank's arena in it; the most of all positions.
  int64_t bytes = 0;
  /// The bytes that each device may have: an equal part, of which CPU ranks have taken their other arena and the
  /// reserve already. Nothing where the cluster does not state the memory.
  std::optional<int64_t> part;
  bool fits() const { return bytes == 0 || !part || bytes <= *part; }
};
HostNeed getHostNeed(Schedule &schedule, const Cluster &cluster);

/// Fails with a diagnostic of kind `memory` where the arenas that the ranks of a host have in its memory exceed it.
mlir::LogicalResult checkHostMemory(Schedule &schedule, const Cluster &cluster);

} // namespace windlass

#endif
