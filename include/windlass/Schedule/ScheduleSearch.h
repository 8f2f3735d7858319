// The search for a pipeline's schedule. Plain C++, no IR.
#ifndef WINDLASS_SCHEDULE_SCHEDULESEARCH_H
#define WINDLASS_SCHEDULE_SCHEDULESEARCH_H

#include "windlass/Schedule/ScheduleProblem.h"

namespace windlass::schedule {

struct SearchOptions {
  /// How much work improving a schedule may take, in actions whose time is computed; about 80 of them take a
  /// microsecond.
  int64_t workLimit = 200'000'000;
};

struct SearchedSchedule {
  /// The schedule, with sends and receives.
  Pipeline pipeline;
  int64_t makespan = 0;
  /// No schedule of the problem takes less. The schedule is optimal where this is its makespan.
  int64_t lowerBound = 0;
};

/// Searches a schedule that takes as little time as possible: list scheduling by several priorities, the named
/// schedules that the problem admits, moves of actions on critical paths, and, for small problems, branch and bound.
/// The result depends on the problem and the options only.
llvm::Expected<SearchedSchedule> searchSchedule(const ScheduleProblem &problem, const SearchOptions &options = {});

/// Returns a time that no schedule of the problem goes below.
llvm::Expected<int64_t> boundSchedule(const ScheduleProblem &problem);

} // namespace windlass::schedule

#endif
