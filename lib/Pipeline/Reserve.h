// The memory of a rank besides its arenas, as the back end declares it or the user gives it.
#ifndef WINDLASS_LIB_PIPELINE_RESERVE_H
#define WINDLASS_LIB_PIPELINE_RESERVE_H

#include "windlass/Dialect/Plan/Transforms/StrategyChoice.h"
#include "windlass/Dialect/Sched/IR/SchedOps.h"
#include "windlass/Pipeline/PlanChoice.h"
#include "windlass/rt/reserve.h"

namespace windlass {

/// Returns the reserve of a rank of a program at L5: `cluster.reserveBytes`, or else what the back end declares.
/// `threads` is the number of threads of a rank, 0 for its part of this host's processors.
rt::reserve declareReserve(sched::ProgramOp program, const Cluster &cluster, int64_t threads);

/// Returns the most bytes of a rank's memory limit that plans can place: the limit without what its process takes under
/// every plan and on every processor, so that a bound holds on other machines too.
int64_t getSearchedMemory(const PlanChoice &choice);

/// Returns the bytes that the communicators of a plan on `mesh` are expected to take: one for each axis, and one for
/// all ranks.
int64_t expectCommunication(const plan::StrategyChoice &mesh, const Cluster &cluster);

} // namespace windlass

#endif
