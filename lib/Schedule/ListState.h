// A pipeline's schedule from its begin up to some job of each class, as list scheduling and branch and bound build it.
#ifndef WINDLASS_SCHEDULE_LISTSTATE_H
#define WINDLASS_SCHEDULE_LISTSTATE_H

#include "Jobs.h"

#include <array>

namespace windlass::schedule {

/// The jobs that are scheduled so far, which are the first ones of each class.
class ListState {
public:
  static constexpr int64_t kUnknown = -1, kNever = std::numeric_limits<int64_t>::max();

  explicit ListState(const Jobs &jobs)
      : next(jobs.countClasses(), 0), ends(jobs.countJobs(), kUnknown), clocks(jobs.countPositions(), 0),
        live(jobs.countPositions(), 0), counts(jobs.countPositions()) {}

  /// Returns when the next job of a class can begin; `kNever` where there is none, where that is not known yet, or
  /// where the position has no room for it.
  int64_t getBegin(const Jobs &jobs, int64_t aClass) const;
  /// Schedules the next job of a class.
  void place(const Jobs &jobs, int64_t aClass, int64_t begin);

  /// The number of jobs of each class that are scheduled, and the end of each job.
  std::vector<int64_t> next, ends;
  /// When each position's last job ends, and how many activations it keeps.
  std::vector<int64_t> clocks, live;
  /// The number of each position's jobs of each kind that are scheduled.
  std::vector<std::array<int64_t, 3>> counts;

private:
  bool admits(const Jobs &jobs, int64_t position, int64_t admitted) const;
};

} // namespace windlass::schedule

#endif
