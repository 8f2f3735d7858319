// The stages that plans of one micro-batch may have, and what each takes.
#ifndef WINDLASS_TOOLS_WINDLASS_PEERS_ACESOSTAGES_H
#define WINDLASS_TOOLS_WINDLASS_PEERS_ACESOSTAGES_H

#include "AcesoStyle.h"

namespace windlass::peers {

/// Returns the ways to run the model in which a stage of that many GPUs is looked for.
std::vector<Style> listStyles(const AcesoCase &problem, int64_t microBatch, int64_t gpus);

/// The stages of one number of GPUs that take at most a given time. Their times are lower bounds at first, and exact
/// once they are made so.
class StageTable {
public:
  /// Finds the stages of plans whose stages take at most `mostTime` microseconds. `work` has the least GPU time of the
  /// operators before each one. All arguments must outlive the table.
  StageTable(const AcesoCase &problem, const std::vector<Style> &styles, const std::vector<double> &work,
             double mostTime);

  int64_t getGpus() const { return gpus; }
  /// Returns the index of a stage, or -1 where no plan can have it.
  int32_t find(size_t begin, size_t end) const { return nodeAt[begin * (count + 1) + end]; }
  /// Returns the end of the longest stage that begins at an operator, or 0 where there is none.
  size_t getLastEnd(size_t begin) const { return lastEnds[begin]; }
  /// Returns the time of a stage; `sides` has bit 0 if its input comes from another node, bit 1 if its output goes to
  /// one. Infinite where it does not fit.
  double getTime(int32_t node, int64_t stagesAfter, int sides) const {
    return times[getEntry(node, stagesAfter) * kSides + sides];
  }
  /// Makes the time of a stage exact. Returns whether it was so already.
  bool makeExact(int32_t node, int64_t stagesAfter, int sides);
  /// Returns the style of a stage whose time is exact, and its recomputed runs, which count from the stage's begin.
  std::pair<const Style *, std::vector<Run>> getChoice(int32_t node, int64_t stagesAfter, int sides) const;

private:
  static constexpr int kSides = 4;
  struct Node {
    size_t begin, end;
  };

  size_t getEntry(int32_t node, int64_t stagesAfter) const { return node * mostAfter + stagesAfter; }
  void classifyOps();
  void grow(size_t length, const std::vector<size_t> &ends);
  bool isSmall(size_t begin, size_t end);
  bool isPlaceable(size_t begin, size_t end) const;
  void addNode(size_t length, const std::vector<size_t> &ends);
  /// Returns the style that takes the least time by what is known, and sets that time.
  size_t findBest(int32_t node, int64_t stagesAfter, int sides, double &time) const;

  const AcesoCase &problem;
  const std::vector<Style> &styles;
  const std::vector<double> &work;
  double mostTime;
  size_t count, mostAfter;
  int64_t gpus;
  /// Equal for operators that are the same in each style.
  std::vector<size_t> classes;
  std::vector<int32_t> nodeAt;
  std::vector<size_t> lastEnds;
  std::vector<Node> nodes;
  /// By node and style: the time without recomputation and transfers.
  std::vector<double> baseTimes;
  /// By node, stages after it and style: what is recomputed.
  std::vector<double> recomputed;
  std::vector<bool> isExact;
  /// By the index of an exact entry: its runs, where it has any.
  std::map<size_t, std::vector<Run>> runs;
  std::vector<double> times;
  /// While the table grows: what each style's stage has, by its length, and up to which length the bounds are known.
  std::vector<RecomputationBounds> bounds;
  std::vector<std::vector<StageSums>> sums;
  size_t boundedLength = 0;
};

} // namespace windlass::peers

#endif
