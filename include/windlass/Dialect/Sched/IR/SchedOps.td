#ifndef WINDLASS_SCHED_OPS_TD
#define WINDLASS_SCHED_OPS_TD

include "windlass/Dialect/Sched/IR/SchedAsyncOps.td"
include "windlass/Dialect/Sched/IR/SchedCmdOps.td"

#endif
