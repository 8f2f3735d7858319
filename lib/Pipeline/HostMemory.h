// What plans take of the hosts' memory.
#ifndef WINDLASS_LIB_PIPELINE_HOSTMEMORY_H
#define WINDLASS_LIB_PIPELINE_HOSTMEMORY_H

#include "windlass/Pipeline/MakeSchedule.h"

namespace windlass {

/// Fails with a diagnostic of kind `memory` where the arenas that the ranks of a host have in its memory exceed it.
mlir::LogicalResult checkHostMemory(Schedule &schedule, const Cluster &cluster);

} // namespace windlass

#endif
