// The step of a cut model before it is planned: which chains of its work no schedule shortens.
#ifndef WINDLASS_LIB_PLANNER_CUTSTEP_H
#define WINDLASS_LIB_PLANNER_CUTSTEP_H

#include "ChunkLabels.h"

#include "windlass/Profile/CostModel.h"
#include "windlass/Schedule/CriticalPath.h"

namespace windlass::planner {

/// A path through the step, along which the work of the chunks' calls adds up.
struct CutChain {
  enum class Kind {
    operators, ///< all operators of the calls, and the reshards for which they wait; squares of gradients at the end
    recompute, ///< the same with what the first chunk recomputes, without the reshards beside which this may run
    reshards,  ///< the same without gradients of weights, but with the reshards beside which only these are computed
    lastReductions, ///< operators and reshards before the last backward of a chunk, then the reductions that begin in
                    ///< it
  };
  Kind kind;
  schedule::StepPath path;
  /// The chunk whose last reductions follow.
  std::optional<int64_t> reduced;

  /// Returns the number of forward or of backward calls on the path, by chunk.
  const std::vector<int64_t> &getCalls(bool isBackward) const { return isBackward ? path.backwards : path.forwards; }
};

/// The step of a model that is cut into chunks, run by a named schedule.
class CutStep {
public:
  /// Takes the micro-batches that a rank runs. Where the schedule does not suit them there are no chains.
  CutStep(const Groups &groups, plan::PipelineAttr pipeline, const CostModel &costs, int64_t positionRanks,
          int64_t microBatches);

  int64_t getPositions() const { return positions; }
  const ChunkLabels &getLabels() const { return labels; }
  const std::vector<CutChain> &getChains() const { return chains; }
  /// Whether the schedule splits backwards, so that their operators run in another order than that of the program.
  bool splitsBackwards() const { return isSplit; }

  /// Returns the number of micro-batches whose whole stash of the first chunk the first position holds at one moment,
  /// at which no backward pass runs there; 0 where it is not known, or where positions have several chunks.
  int64_t getFirstInFlight() const { return firstInFlight; }

  /// Returns how often operators run on a chain, `members` by chunk, of the forward or of the backward pass.
  static int64_t countRuns(const CutChain &chain, llvm::ArrayRef<int64_t> members, bool isBackward);
  /// Returns how many of `members`, by chunk, are on a position, and the least number of all positions.
  int64_t countOn(int64_t position, llvm::ArrayRef<int64_t> members) const;
  int64_t countLeast(llvm::ArrayRef<int64_t> members) const;

private:
  /// Returns the times of the chunks' calls where all ranks share the work of operators evenly.
  std::vector<schedule::ChunkTimes> getTimes(const Groups &groups, const CostModel &costs, int64_t positionRanks) const;
  void addChains(const schedule::Pipeline &step, const std::vector<schedule::ChunkTimes> &times);
  /// Drops chains on which no operator and no reduction runs more often than on another one of their kind.
  void dropShorter(const Groups &groups);

  int64_t positions;
  bool isSplit = false;
  int64_t firstInFlight = 0;
  ChunkLabels labels;
  /// The position of each chunk; empty where there are no chains.
  std::vector<int64_t> positionOf;
  std::vector<CutChain> chains;
};

} // namespace windlass::planner

#endif
