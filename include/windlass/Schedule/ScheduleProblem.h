// What a pipeline's schedule is searched for. Plain C++, no IR.
#ifndef WINDLASS_SCHEDULE_SCHEDULEPROBLEM_H
#define WINDLASS_SCHEDULE_SCHEDULEPROBLEM_H

#include "windlass/Schedule/PipelineTiming.h"

namespace windlass::schedule {

/// The pipeline that a schedule is searched for. Each chunk runs its micro-batches in order, in forwards as in
/// backwards.
struct ScheduleProblem {
  Placement placement;
  /// The micro-batches of each chain.
  int64_t microBatches = 1;
  /// Whether a backward is an input gradient and a weight gradient, with other actions between them where that helps.
  bool isSplit = false;
  PipelineTimes times;
  /// The most activations that each position may keep, one for each micro-batch of a chunk; none: any number.
  std::vector<int64_t> caps;
};

/// The most forwards and backwards, or parts of these, of a problem that is searched.
constexpr int64_t kMaxSearchedActions = int64_t(1) << 18;

/// The most chunks of a position of a problem that is searched, where all positions have the same number: the square of
/// that number, summed over the positions, is bounded by that of a single position.
constexpr int64_t kMaxSearchedChunks = 512;

/// Returns the least cap of each position under which there are schedules: the number of its chunks in one chain.
std::vector<int64_t> getLeastCaps(const Placement &placement);

/// Fails where the placement or the times are none, the number of caps is not that of positions, a cap leaves no room
/// for one micro-batch of all chunks of a chain on its position, or there are too many actions or chunks.
llvm::Error checkProblem(const ScheduleProblem &problem);

/// Returns whether each chunk runs its micro-batches in order, in forwards and in both parts of backwards, as all
/// schedules of a problem do.
bool runsInOrder(const Pipeline &pipeline);

} // namespace windlass::schedule

#endif
