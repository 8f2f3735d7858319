// How long a pipeline's step takes, and what its positions keep meanwhile. Plain C++, no IR.
#ifndef WINDLASS_SCHEDULE_PIPELINETIMING_H
#define WINDLASS_SCHEDULE_PIPELINETIMING_H

#include "windlass/Schedule/Pipeline.h"

namespace windlass::schedule {

/// How long the computation of a micro-batch of a chunk takes, in any unit. A whole backward takes as long as its two
/// parts.
struct ChunkTimes {
  int64_t forward = 1, inputGradient = 1, weightGradient = 1;

  int64_t get(ActionKind kind) const;
};

struct PipelineTimes {
  /// The times of each chunk.
  std::vector<ChunkTimes> chunks;
  /// How long an activation or a gradient takes from one position to another, beside the computation of both.
  int64_t hop = 0;
  /// Whether a forward and a whole backward of another chunk right after it are one action, as DualPipe overlaps them:
  /// it begins when both may, and the results of both are there at its end.
  bool fusesPairs = false;
};

/// The most that a time may be, so that the sum over all actions of a step is no overflow.
constexpr int64_t kMaxTicks = int64_t(1) << 40;

struct PipelineTiming {
  /// When the last action ends.
  int64_t makespan = 0;
  /// When each action of each position begins. Sends, receives, reductions and updates take no time of their own.
  std::vector<std::vector<int64_t>> begins;
  /// How long each position computes.
  std::vector<int64_t> busy;
  /// The most activations that each position keeps at once: one for each micro-batch of a chunk, from its forward to
  /// the end of its backward.
  std::vector<int64_t> peaks;

  /// Returns which part of all positions' time passes without computation.
  double getIdleShare() const;
};

/// Fails where the times are not those of the placement's chunks, or one is negative or above `kMaxTicks`.
llvm::Error checkTimes(const Placement &placement, const PipelineTimes &times);

/// Runs each position's computation in its order, each action as early as what it reads allows. Transfers are not
/// looked at: a value arrives `hop` after it is computed. Fails where `checkTimes` does, and where a position waits for
/// ever.
llvm::Expected<PipelineTiming> timePipeline(const Pipeline &pipeline, const PipelineTimes &times);

} // namespace windlass::schedule

#endif
