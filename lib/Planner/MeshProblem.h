// The problem of labels that the choice of a plan on one mesh is.
#ifndef WINDLASS_LIB_PLANNER_MESHPROBLEM_H
#define WINDLASS_LIB_PLANNER_MESHPROBLEM_H

#include "Labels.h"
#include "Lifetimes.h"

#include "windlass/Dialect/Plan/Transforms/StrategyChoice.h"

namespace windlass::planner {

/// Nodes are operator groups, parameter groups, and those values that are read in more than one place: their label is
/// the one layout in which they are found. Costs are nanoseconds of a step (the
/// largest cost that a problem may have is 10^16, in picoseconds less than three hours): micro-batches one after
/// another count m times. Where collectives run beside operators there are three windows, the forward passes, the last
/// backward pass and those before it, each with a stream of operators and one of the collectives of parameters and
/// gradients: a window takes as long as the busier. Reshards of values are exposed.
class MeshProblem {
public:
  MeshProblem(const Groups &groups, const Labels &labels, Reshards &reshards, const CostModel &costs,
              const plan::StrategyChoice &choice);

  /// For memory of so many bytes on a rank, with so many parts of the blocks run again: in what memory they take, not
  /// in what they cost.
  search::Problem build(int64_t memoryBytes, int rerunParts);

  /// What it costs to run all blocks again as a solution splits them, and at the least.
  int64_t getRerunCost(const search::Solution &solution) const;
  int64_t getLeastRerunCost() const;

  /// What a solution chooses.
  plan::StrategyChoice decode(const search::Solution &solution) const;

  /// The solution of the problem built last that the module at L3 is after `choice`; nothing where a label for
  /// something is missing. Repeats are taken to be as their first ones.
  std::optional<search::Solution> encode(const plan::StrategyChoice &choice) const;

private:
  /// A value that is a node: a result of a group's operators.
  struct ValueNode {
    unsigned group, result;
    std::vector<plan::LayoutAttr> layouts;
    int32_t node;
  };

  void addOperators();
  void addParameters(const Lifetimes &lifetimes);
  void addValues(const Lifetimes &lifetimes);
  void addArguments();
  void addValue(unsigned group, unsigned result, const Uses &uses, const std::map<unsigned, int64_t> &gradients,
                const std::vector<LiveRun> &runs);
  void addPieces(search::Node &node, const std::vector<LiveRun> &runs, const std::vector<int64_t> &bytes);
  /// The edge's table, first node's label major; one from a node to itself adds to its costs.
  void addEdge(int32_t from, int32_t to, const std::function<int64_t(size_t, size_t)> &cost);
  /// Of a parameter's copies, by label.
  int64_t getCopyBytes(unsigned group, const ParameterLabel &label) const;
  /// What a step's update of a parameter and the collectives of its copies take: those that nothing runs beside, and
  /// those in each window.
  struct ShareCosts {
    int64_t exposed = 0, inWindow[3] = {};
  };
  ShareCosts getShareCosts(unsigned group, const ParameterLabel &label) const;
  /// Adds to a node what it puts on a stream, by label.
  enum Window { kForward, kBackward, kLastBackward, kWindows };
  enum Stream { kCompute, kShare, kStreams };
  void addLoad(search::Node &node, Window window, Stream stream, std::vector<int64_t> load);
  /// Of bringing so many gradients that is made in a layout to the copy that a label accumulates.
  int64_t getGradientCost(int64_t count, unsigned group, plan::LayoutAttr made, const ParameterLabel &label);
  /// Of running all blocks again, by what an operator of each group takes.
  int64_t sumReruns(const std::function<int64_t(unsigned)> &getPicoseconds) const;
  int64_t getReadCost(int64_t count, mlir::RankedTensorType type, plan::LayoutAttr found, plan::LayoutAttr wanted,
                      bool isStashed);

  const Groups &groups;
  const Labels &labels;
  Reshards &reshards;
  const CostModel &costs;
  const plan::StrategyChoice base;
  plan::MeshAttr mesh;
  /// Micro-batches of a rank in a step.
  int64_t rounds = 1;
  search::Problem problem;
  std::vector<ValueNode> values;
  int32_t firstParameter = 0;
};

} // namespace windlass::planner

#endif
