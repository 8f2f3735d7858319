// Exact search of a small pipeline's schedule.
#ifndef WINDLASS_SCHEDULE_BRANCHANDBOUND_H
#define WINDLASS_SCHEDULE_BRANCHANDBOUND_H

#include "ScheduleBound.h"

namespace windlass::schedule {

/// Looks for orders with a makespan below that of `orders`, `makespan`, and takes them over. Returns whether all were
/// looked at before `nodes` states of the search were spent: then none is better than what is returned in `makespan`.
/// Only for one chain, since with two the admission of `ListState` leaves some schedules out, and at most 64 classes.
bool branchAndBound(const Jobs &jobs, const ScheduleBound &bound, Orders &orders, int64_t &makespan, int64_t nodes);

} // namespace windlass::schedule

#endif
