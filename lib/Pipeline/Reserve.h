// What a rank takes beside its arenas, as the back end declares it.
#ifndef WINDLASS_LIB_PIPELINE_RESERVE_H
#define WINDLASS_LIB_PIPELINE_RESERVE_H

#include "windlass/Dialect/Plan/Transforms/StrategyChoice.h"
#include "windlass/Dialect/Sched/IR/SchedOps.h"
#include "windlass/Pipeline/PlanChoice.h"
#include "windlass/rt/reserve.h"

namespace windlass {

/// What the back end declares for a rank of a program at L5. `threads` are those of a rank, 0 for its part of this
/// host's processors.
rt::reserve declareReserve(sched::ProgramOp program, const Cluster &cluster, int64_t threads);

/// What is left of a rank's memory limit for what plans place, at most: what its process takes whatever the plan and
/// the processor are is taken off, so that a bound holds on other machines too.
int64_t getSearchedMemory(const PlanChoice &choice);

/// What the communicators of a plan on such a mesh are expected to take: one for each axis, and one for all of them.
int64_t expectCommunication(const plan::StrategyChoice &mesh, const Cluster &cluster);

} // namespace windlass

#endif
