// List scheduling of a pipeline: each position takes, of the jobs that it can run next, the one that comes first by a
// priority.
#ifndef WINDLASS_SCHEDULE_LISTSCHEDULER_H
#define WINDLASS_SCHEDULE_LISTSCHEDULER_H

#include "Jobs.h"

#include <array>

namespace windlass::schedule {

/// A choice among the jobs that a position could run: it takes the one with the least `ranks[class] + age * ageWeight`,
/// the first by class where several have that. A job's age is the number of micro-batches before its own.
struct Priority {
  std::vector<int64_t> ranks;
  int64_t ageWeight = 0;
  /// The time that a position waits for a better job than those that could begin at once.
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

/// Schedules all jobs in the order of their keys where no position waits for a job while it could end another one: an
/// active schedule (Giffler and Thompson, 1960). With the begins of an active schedule as keys, it is that schedule
/// again. Never deadlocks either.
Orders scheduleByKeys(const Jobs &jobs, llvm::ArrayRef<int64_t> keys);

/// Schedules rounds of micro-batches, of the sizes `rounds`. In forwards, a position runs all micro-batches of a round
/// through one of its chunks, then through the next one, and then begins the next round; in backwards it begins with
/// the last chunk. Backwards come before forwards. Returns nothing where that order and the caps make a position wait
/// for ever.
std::optional<Orders> scheduleRounds(const Jobs &jobs, llvm::ArrayRef<int64_t> rounds);

} // namespace windlass::schedule

#endif
