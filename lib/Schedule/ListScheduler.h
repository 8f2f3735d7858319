// List scheduling of a pipeline: each position takes, of the jobs that it can run next, the one that comes first by a
// priority.
#ifndef WINDLASS_SCHEDULE_LISTSCHEDULER_H
#define WINDLASS_SCHEDULE_LISTSCHEDULER_H

#include "Jobs.h"

#include <array>

namespace windlass::schedule {

/// Which of several jobs a position takes: that with the least `ranks[class] + age * ageWeight`, and of those the first
/// by class. A job's age is the number of micro-batches before its own.
struct Priority {
  std::vector<int64_t> ranks;
  int64_t ageWeight = 0;
  /// For how long a position waits for a better job than those that could begin at once.
  int64_t patience = 0;
};

/// The rule by which kinds and chunks are ranked.
struct PriorityRule {
  /// The ranks of forwards, input gradients and weight gradients, each different.
  std::array<int64_t, 3> kinds = {1, 0, 2};
  /// Whether, of a kind, forwards of later chunks and input gradients of earlier chunks come first: those with less
  /// ahead of them.
  bool finishesFirst = true;
  /// Whether the oldest micro-batch comes before the kind.
  bool oldestFirst = false;
};

Priority makePriority(const Jobs &jobs, const PriorityRule &rule);

/// Schedules all jobs. Never deadlocks: a forward is admitted only where the position has, from then on, room to finish
/// its micro-batches one after the other, the oldest first. So the oldest micro-batch of all can always go on, whatever
/// the others hold. Needs caps that leave room for one micro-batch.
Orders scheduleList(const Jobs &jobs, const Priority &priority);

/// Schedules all jobs in the order of their keys, as far as that delays no other job of a position by more than it
/// takes: an active schedule (Giffler and Thompson, 1960). With the begins of an active schedule as keys, it is that
/// schedule again. Deadlocks as little.
Orders scheduleByKeys(const Jobs &jobs, llvm::ArrayRef<int64_t> keys);

/// Schedules rounds of micro-batches, of the sizes `rounds`: a position runs all micro-batches of a round of one chunk
/// before those of the next chunk, and then the next round, in forwards as, from the last chunk on, in backwards;
/// backwards first. Returns nothing where that order and the caps make a position wait for ever.
std::optional<Orders> scheduleRounds(const Jobs &jobs, llvm::ArrayRef<int64_t> rounds);

} // namespace windlass::schedule

#endif
