// The problem of labels that the choice of a plan on one mesh is.
#ifndef WINDLASS_LIB_PLANNER_MESHPROBLEM_H
#define WINDLASS_LIB_PLANNER_MESHPROBLEM_H

#include "Labels.h"
#include "Lifetimes.h"

#include "windlass/Dialect/Plan/Transforms/StrategyChoice.h"

namespace windlass::planner {

/// Nodes are operator groups, parameter groups, and those values that are read in more than one place, or whose
/// layout is pinned: their label is the one layout in which they are found. Costs are nanoseconds of a step (the
/// largest cost that a problem may have is 10^16, in picoseconds less than three hours): micro-batches one after
/// another count m times. Where collectives run beside operators there are three windows, the forward passes, the last
/// backward pass and those before it, each with a stream of operators and one of the collectives of parameters and
/// gradients: a window takes as long as the busier. Reshards of values are exposed.
class MeshProblem {
public:
  /// Threads change nothing of the problems.
  MeshProblem(const Groups &groups, const Reruns &reruns, const Labels &labels, Reshards &reshards,
              const CostModel &costs, const plan::StrategyChoice &choice, int threads);

  /// With so many of `kRerunParts` of the blocks run again. Memory is not limited.
  search::Problem build(int rerunParts);
  /// With nothing run again in the memory that is taken, but these operators in what is paid.
  search::Problem buildWithReruns(const RerunCounts &counts);
  /// With what is run again chosen too, for each class of blocks: a node for each, whose labels are the class's. No
  /// plan costs less than the Lagrangean bounds of this problem, whichever blocks of a class choose what: a Lagrangean
  /// is linear in their shares, so least where all choose one, and shares are of all blocks but one
  /// (`Lifetimes::getRunsByLabel`), of which an operator is run again at least so often.
  search::Problem buildWithRerunChoice();

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

  search::Problem build(const Lifetimes &lifetimes, const RerunCounts &counts, bool choosesReruns);
  /// Without nodes, of so many rows.
  void begin(int32_t rows);
  /// With so many operators run again.
  void addOperators(const RerunCounts &counts);
  void addParameters(const Lifetimes &lifetimes);
  /// With what values are in memory by what is run again where `choosesReruns`.
  void addValues(const Lifetimes &lifetimes, bool choosesReruns);
  void addArguments();
  /// Null where the value is found in any layout.
  plan::LayoutAttr getPinnedLayout(unsigned group, unsigned result) const;
  /// The one layout in which all find a value: any in which it is made or taken.
  std::vector<plan::LayoutAttr> listLayouts(unsigned group, unsigned result, const Uses &uses) const;
  /// The node of a value, which may be its maker's; gives back what it takes in memory, by the node's label.
  int32_t addValue(unsigned group, unsigned result, std::vector<int64_t> &bytes);
  void addPieces(search::Node &node, const std::vector<LiveRun> &runs, const std::vector<int64_t> &bytes);
  /// What a value takes in memory where that depends on what its class of blocks chooses.
  struct ChosenMemory {
    int32_t source;
    unsigned rerunClass;
    std::vector<int64_t> bytes;
    std::vector<std::vector<LiveRun>> runs;
  };
  /// A node for each class of blocks, one for each group whose operators may be run again, and one for each value's
  /// memory. Those have a label for each that differs of the node that they belong to, so that tables stay small.
  void addRerunChoice();
  void addRerunLoad(const RerunClass &its, unsigned group, std::vector<int64_t> counts, int32_t choice);
  void addChosenMemory(const ChosenMemory &memory, int32_t choice);
  /// What a choice of two labels costs.
  using PairCost = std::function<int64_t(size_t, size_t)>;
  /// An edge whose costs are of reshards of one type; one from a node to itself adds to its costs. Its table, first
  /// node's label major, is filled by `fillTables`: what the function refers to lives as long as this object.
  void addEdge(int32_t from, int32_t to, mlir::RankedTensorType type, PairCost cost);
  /// Tables of different types beside each other. They do not depend on what is run again: problems after the first
  /// one have those that it made, which is most of what building takes. Edges that cost nothing are dropped.
  void fillTables();
  /// Two labels that belong together, of which one follows from the other.
  void addLink(int32_t from, int32_t to, const std::function<bool(size_t, size_t)> &belong);
  /// Adds to a node what it puts on a stream of the windows, by label.
  void addLoad(search::Node &node, int32_t stream, std::vector<int64_t> load);
  /// Adds to a node what so many operators take in the backward passes, by label.
  struct Work {
    int64_t count, picoseconds;
  };
  void addBackwardLoad(search::Node &node, const std::vector<Work> &works);
  int64_t getReadCost(int64_t count, mlir::RankedTensorType type, plan::LayoutAttr found, plan::LayoutAttr wanted,
                      bool isStashed);

  const Groups &groups;
  const Reruns &reruns;
  const Labels &labels;
  Reshards &reshards;
  const plan::StrategyChoice base;
  plan::MeshAttr mesh;
  StepWindows windows;
  /// Micro-batches of a rank in a step.
  int64_t rounds = 1;
  /// By parameter group.
  std::vector<ParameterCosts> parameterCosts;
  search::Problem problem;
  std::vector<ValueNode> values;
  int32_t firstParameter = 0;
  std::vector<ChosenMemory> chosenMemory;
  /// By edge, until `fillTables`.
  struct WantedTable {
    mlir::RankedTensorType type;
    PairCost cost;
  };
  std::vector<WantedTable> wantedTables;
  /// Of the first problem, in the order in which edges are added.
  std::vector<std::vector<int64_t>> knownTables;
  int threads;
};

} // namespace windlass::planner

#endif
