// Times that no schedule goes below.
#ifndef WINDLASS_SCHEDULE_SCHEDULEBOUND_H
#define WINDLASS_SCHEDULE_SCHEDULEBOUND_H

#include "Jobs.h"

namespace windlass::schedule {

/// A bound on every schedule: no job begins before its head, and from a job's end on the step takes at least its tail.
struct ScheduleBound {
  int64_t makespan = 0;
  std::vector<int64_t> heads, tails;
};

/// Computes heads and tails from what jobs read, from the jobs that must run before or after each on its position, and
/// from the activations that must be freed before a forward.
ScheduleBound computeBound(const Jobs &jobs);

} // namespace windlass::schedule

#endif
