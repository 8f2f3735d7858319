// Ways to run a stage of Aceso's model, and what recomputation costs to make a stage fit.
#ifndef WINDLASS_TOOLS_WINDLASS_PEERS_ACESOSTYLE_H
#define WINDLASS_TOOLS_WINDLASS_PEERS_ACESOSTYLE_H

#include "AcesoCase.h"

#include "llvm/ADT/ArrayRef.h"

namespace windlass::peers {

/// An operator of the model that runs in one way: times in microseconds, sizes in MB.
struct StyledOp {
  AcesoWay way;
  /// Forward and backward, the forward pass alone, and the change of layout behind the operator before it.
  double time, forward, reshard;
  double input, weights, kept, forwardReserved, backwardReserved;
  /// What it takes to receive the input and to send the output, inside a node and between nodes.
  std::array<double, 2> enter, leave;
  bool beginsLayer;
};

/// A way to run each operator of the model on a number of GPUs.
struct Style {
  int64_t gpus;
  std::vector<StyledOp> ops;
};

/// The sums of a stage that grows from its last operator to its first.
struct StageSums {
  double time = 0, weights = 0, kept = 0, input = 0, mostForward = 0, mostBackward = 0;

  StageSums() = default;
  /// Adds all operators of a stage.
  StageSums(const Style &style, size_t begin, size_t end) {
    for (size_t first = end; first-- > begin;)
      prepend(style, first, end);
  }
  /// Adds operator `first` of a style in front of a stage that ends at `end`.
  void prepend(const Style &style, size_t first, size_t end);
  /// Returns the MB that no recomputation avoids, however many operators the stage gets besides.
  double getUnavoidable(const AcesoCase &problem) const;
  /// Returns the MB by which the stage exceeds the limit without recomputation; negative where it fits.
  double getExcess(const AcesoCase &problem, int64_t stagesAfter) const;
};

/// A run is a range of recomputed operators of a layer. All but its last one save what they keep, and its peak is what
/// they keep together, while it is recomputed. Runs do not touch, but for the ends of layers.
struct Run {
  size_t begin, end;
};

/// The least time to recompute so that a stage fits.
struct Recomputation {
  /// In microseconds; infinite where the stage never fits.
  double cost;
  std::vector<Run> runs;
};

/// Returns the recomputation that makes operators [begin, end) fit, whose memory exceeds the limit by `excess` MB.
Recomputation findRecomputation(const Style &style, size_t begin, size_t end, double excess, int64_t stagesAfter);

/// Returns the MB by which runs make a stage smaller. They count from the begin of the stage.
double getRelief(const Style &style, size_t begin, llvm::ArrayRef<Run> runs, int64_t stagesAfter);

/// Lower bounds on what stages that end at one operator must recompute. They are Lagrangian, for several prices of a MB
/// and several limits of the peak.
class RecomputationBounds {
public:
  RecomputationBounds(const Style &style, double limit);

  /// Puts operator `first` in front of the stage that was last extended to `first + 1` and ends at `end`. Stages with
  /// the same last operators may take each other's place.
  void prepend(size_t first, size_t end);
  /// Returns a bound in microseconds for the stage that begins at `first`; infinite where it never fits.
  double getBound(size_t first, double excess, int64_t stagesAfter) const;

private:
  double *getRow(size_t first) { return rows.data() + (end - first) * width; }
  const double *getRow(size_t first) const { return rows.data() + (end - first) * width; }

  const Style &style;
  /// The largest and least peak of each class of plans.
  std::vector<double> mostPeak, leastPeak;
  std::vector<double> prices;
  /// For each operator of the stage and each class and price, the least cost less the price of what is saved; behind
  /// the prices of each class the most that can be saved, negated.
  std::vector<double> rows;
  size_t end = 0, width;
};

} // namespace windlass::peers

#endif
