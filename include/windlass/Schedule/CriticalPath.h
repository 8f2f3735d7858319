// The longest paths through a pipeline's step. Plain C++, no IR.
#ifndef WINDLASS_SCHEDULE_CRITICALPATH_H
#define WINDLASS_SCHEDULE_CRITICALPATH_H

#include "windlass/Schedule/PipelineTiming.h"

namespace windlass::schedule {

/// A path through the computation of a step: each action on it begins behind the one before, which is on the same
/// position, or makes what the action reads. No two of them run at the same time, however long they take.
struct StepPath {
  /// The position at which the path ends.
  int64_t position = 0;
  /// The number of forwards on the path, and of backwards, by chunk. A backward in two parts counts where both parts
  /// are on the path, of one micro-batch or of two.
  std::vector<int64_t> forwards, backwards;

  bool operator==(const StepPath &other) const {
    return position == other.position && forwards == other.forwards && backwards == other.backwards;
  }
};

/// Finds paths that are longest where the computation takes given times. Transfers take no time.
class CriticalPaths {
public:
  /// Fails where `timePipeline` does. Refers to `pipeline`, which outlives this object.
  static llvm::Expected<CriticalPaths> create(const Pipeline &pipeline, const std::vector<ChunkTimes> &times);

  /// Returns a path to the end of the step. It holds all computation of the position at which it ends that is behind
  /// the point where the path comes to this position.
  StepPath findToEnd() const;
  /// Returns a path to the beginning of the action that completes the last backward of a chunk.
  StepPath findToLastBackward(int64_t chunk) const;

private:
  CriticalPaths(const Pipeline &pipeline, const std::vector<ChunkTimes> &times, PipelineTiming timing);
  /// Returns the path that ends where the action begins.
  StepPath follow(int64_t position, size_t index) const;
  int64_t getEnd(int64_t position, size_t index) const;
  /// Returns the position and the index of the action on another position, or of another chunk on the same one, whose
  /// value an action reads; nothing where it reads none.
  std::optional<std::pair<int64_t, size_t>> findMaker(const Action &action) const;

  const Pipeline &pipeline;
  std::vector<ChunkTimes> times;
  PipelineTiming timing;
  /// The indices of forwards, and of the actions that make input gradients, by chunk and micro-batch.
  std::vector<std::vector<size_t>> forwards, inputGradients;
};

} // namespace windlass::schedule

#endif
