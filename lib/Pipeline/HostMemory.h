// What plans take of the hosts' memory.
#ifndef WINDLASS_LIB_PIPELINE_HOSTMEMORY_H
#define WINDLASS_LIB_PIPELINE_HOSTMEMORY_H

#include "windlass/Pipeline/MakeSchedule.h"

namespace windlass {

/// What a rank needs of a memory that its host's ranks share, and what it may have.
struct SharedMemory {
  /// The bytes of the arena that a rank has there; those of the largest one where positions differ.
  int64_t bytes = 0;
  /// The bytes that a rank may have. Nothing where the cluster does not state the size.
  std::optional<int64_t> part;
  bool fits() const { return bytes == 0 || !part || bytes <= *part; }
};

/// What a rank needs of its host, whose devices share it evenly.
struct HostNeed {
  /// The need of the host's memory, in which a CPU rank has its other arena and the reserve too.
  SharedMemory memory;
  /// The need of the host's disk.
  SharedMemory disk;
  bool fits() const { return memory.fits() && disk.fits(); }
};
/// Returns what a rank of the schedule needs, and may have, of the smallest host of the cluster.
HostNeed getHostNeed(Schedule &schedule, const Cluster &cluster);

/// Fails with a diagnostic of kind `memory` where a rank needs more of the host's memory or disk than it may have.
mlir::LogicalResult checkHostMemory(Schedule &schedule, const Cluster &cluster);

} // namespace windlass

#endif
