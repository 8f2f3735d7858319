// Problems of schedules, and what holds for every schedule that is searched.
#ifndef WINDLASS_UNITTESTS_SCHEDULE_SEARCHEDPROBLEMS_H
#define WINDLASS_UNITTESTS_SCHEDULE_SEARCHEDPROBLEMS_H

#include "windlass/Schedule/NamedSchedules.h"
#include "windlass/Schedule/ScheduleSearch.h"

#include "gtest/gtest.h"

#include <cmath>

namespace windlass::schedule {

/// Units of time: a rank's forward, input gradient and weight gradient over all of its chunks take this long.
constexpr int64_t kUnit = 1200;

/// A problem with equal chunks. `cap` is in micro-batches, 0 for none; `hop` in forwards of a rank.
inline ScheduleProblem makeProblem(PlacementKind kind, int64_t p, int64_t m, int64_t v, bool isSplit, double cap = 0,
                                   double hop = 0) {
  ScheduleProblem problem;
  problem.placement = makePlacement(kind, p, v);
  problem.microBatches = m;
  problem.isSplit = isSplit;
  problem.times.chunks.assign(problem.placement.countChunks(), {kUnit / v, kUnit / v, kUnit / v});
  problem.times.hop = std::llround(hop * kUnit);
  if (cap > 0)
    problem.caps.assign(p, std::llround(cap * v));
  return problem;
}

/// Searches, and checks that the result is what it says.
inline SearchedSchedule search(const ScheduleProblem &problem, int64_t workLimit = SearchOptions().workLimit) {
  llvm::Expected<SearchedSchedule> found = searchSchedule(problem, {workLimit});
  if (!found) {
    ADD_FAILURE() << llvm::toString(found.takeError());
    return {};
  }
  EXPECT_EQ(llvm::toString(checkPipeline(found->pipeline)), "");
  PipelineTiming timing = llvm::cantFail(timePipeline(found->pipeline, problem.times));
  EXPECT_EQ(timing.makespan, found->makespan);
  EXPECT_GE(found->makespan, found->lowerBound);
  for (size_t position = 0; position < problem.caps.size(); ++position)
    EXPECT_LE(timing.peaks[position], problem.caps[position]);
  return std::move(*found);
}

} // namespace windlass::schedule

#endif
