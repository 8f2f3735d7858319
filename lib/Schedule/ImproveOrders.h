// Local search over the orders of a pipeline's positions.
#ifndef WINDLASS_SCHEDULE_IMPROVEORDERS_H
#define WINDLASS_SCHEDULE_IMPROVEORDERS_H

#include "Jobs.h"

namespace windlass::schedule {

/// Work that is left, in jobs whose time is computed.
struct WorkLeft {
  int64_t jobs;
  bool isSpent() const { return jobs <= 0; }
};

/// Improves orders that keep the caps by moves of jobs on critical paths (tabu search; the moves and their estimates
/// are those of Balas and Vazacopoulos, 1998). Ends at a makespan of at most `bound`, or when
/// `work` is spent. Returns the best makespan; `orders` are those that have it.
int64_t improveOrders(const Jobs &jobs, Orders &orders, int64_t bound, uint64_t seed, WorkLeft &work);

} // namespace windlass::schedule

#endif
