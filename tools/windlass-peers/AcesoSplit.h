// Splits of Aceso's model into stages.
#ifndef WINDLASS_TOOLS_WINDLASS_PEERS_ACESOSPLIT_H
#define WINDLASS_TOOLS_WINDLASS_PEERS_ACESOSPLIT_H

#include "AcesoStages.h"

namespace windlass::peers {

/// A stage of a split: operators [begin, end) in a stage of one of the tables.
struct Place {
  size_t table, begin, end;
  int64_t stagesAfter;
  /// Bit 0 is set if the input comes from another node, bit 1 if the output goes to one.
  int sides;
};

enum class Objective { Most, Sum };

/// Finds splits by dynamic programming from the last stage to the first.
class SplitFinder {
public:
  /// `work` has the least GPU time of the operators before each one. All arguments must outlive the finder.
  SplitFinder(const AcesoCase &problem, const std::vector<StageTable> &tables, const std::vector<double> &work)
      : problem(problem), tables(tables), work(work), count(problem.order.size()), gpus(problem.gpus) {}

  /// Finds the split whose slowest stage, or the sum of whose stages, takes the least time by what the tables know,
  /// with no stage above `cap` microseconds. Returns no stages where there is none.
  std::vector<Place> find(double cap, Objective objective);

private:
  struct Choice {
    uint32_t table, end;
  };
  /// The operators where a stage can begin: an interval that holds them all.
  struct Interval {
    size_t begin, end;
  };

  size_t getRow(size_t after, size_t used) const { return after * (gpus + 1) + used; }
  size_t getIndex(size_t after, size_t used, size_t first) const { return getRow(after, used) * (count + 1) + first; }
  int getSides(size_t used, size_t own) const;
  bool straddlesNodes(size_t used, size_t own) const;
  void extend(size_t after, size_t used, size_t first, size_t table, double cap, Objective objective);
  std::vector<Place> trace(size_t after) const;

  const AcesoCase &problem;
  const std::vector<StageTable> &tables;
  const std::vector<double> &work;
  size_t count, gpus;
  /// By the stages after the first one, the GPUs of all of them and the first operator.
  std::vector<double> values;
  std::vector<Choice> choices;
  /// By the stages after the first one and the GPUs of all of them: where the values are finite.
  std::vector<Interval> known;
};

} // namespace windlass::peers

#endif
