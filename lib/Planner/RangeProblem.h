// Builds the problem of labels that planning a range of operators on one mesh is.
#ifndef WINDLASS_LIB_PLANNER_RANGEPROBLEM_H
#define WINDLASS_LIB_PLANNER_RANGEPROBLEM_H

#include "ProblemNodes.h"
#include "RecomputeChoice.h"

namespace windlass::planner {

/// The problem of labels that planning a range of operators on one mesh is. Its nodes are operator groups, parameter
/// groups, and values that are read in more than one place, whose layout is pinned, or that other ranges make; the
/// label of a value is the one layout in which it is found. Moving a value over the border costs nothing here. Costs
/// are nanoseconds of a step (the largest cost of a problem is 10^16, in picoseconds less than three hours); the work
/// of each micro-batch counts m times. Operators and the collectives of parameters and gradients are on the streams of
/// the setting's windows; reshards of values are exposed.
class RangeProblem {
public:
  /// Takes the mesh and the pins of `choice`; each member of its axes of replicas runs other micro-batches. `costs` are
  /// those of the mesh's devices. All arguments but `choice` and `setting` outlive this object.
  RangeProblem(const Groups &groups, const RecomputeClasses &recompute, const CostModel &costs,
               const plan::StrategyChoice &choice, const RangeSetting &setting);
  RangeProblem(const RangeProblem &) = delete;

  /// The mesh and what is pinned.
  const plan::StrategyChoice &getBase() const { return base; }
  /// Returns the pin that no label obeys, in which case no problem may be built; empty where everything has labels.
  std::string findUnmetPin() const { return labels.findUnmetPin(); }

  /// Builds the problem with `parts` of `kRecomputeParts` of the blocks recomputed.
  search::Problem build(int parts);
  /// Builds the problem with the memory of a plan that recomputes nothing, but with the costs of the recomputed
  /// operators `counts`.
  search::Problem buildWithRecompute(const RecomputeCounts &counts);
  /// Builds the problem that also chooses what is recomputed: it has a node for each class of blocks, whose labels are
  /// the class's. No plan costs less than the Lagrangean bounds of this problem, whichever blocks of a class choose
  /// which label: a Lagrangean is linear in the labels' shares, so it is least where all blocks choose one label, and
  /// shares are of all blocks but one (`Lifetimes::getRunsByLabel`), which bounds from below how often an operator is
  /// recomputed.
  search::Problem buildWithRecomputeChoice();

  /// Returns the choice of a solution of the problem that was built last.
  plan::StrategyChoice decode(const search::Solution &solution) const { return nodes.decode(solution); }

  /// Returns the solution of the problem that was built last which describes a copy of the module at L3 after `choice`;
  /// nothing where a label is missing. Repeats are assumed to be like their first ones.
  std::optional<search::Solution> encode(const plan::StrategyChoice &choice, const Counterparts &planned) const {
    return nodes.encode(choice, planned);
  }

private:
  search::Problem build(const Lifetimes &lifetimes, const RecomputeCounts &counts, bool choosesRecompute);
  /// Adds the operators, of which `counts` are recomputed.
  void addOperators(const RecomputeCounts &counts);
  void addParameters(const Lifetimes &lifetimes);
  void addParameter(unsigned group, const Lifetimes &lifetimes);
  /// Adds the values, the edges to their makers and readers, and the memory that they take, which depends on what is
  /// recomputed where `choosesRecompute` holds.
  void addValues(const Lifetimes &lifetimes, bool choosesRecompute);
  void addBorder(const Lifetimes &lifetimes, bool choosesRecompute);
  /// Adds the edges from parameters to their readers.
  void addReads();
  /// Adds the reshards of the function's arguments.
  void addArguments();
  /// Returns the pinned layout of a value; null where no pin fixes it.
  plan::LayoutAttr getPinnedLayout(unsigned group, unsigned result) const;
  /// Lists the layouts that a node of a value may have: `made` and all in which it is taken.
  std::vector<plan::LayoutAttr> listLayouts(std::vector<plan::LayoutAttr> made, const Uses &uses) const;
  /// Adds the node of values of `type` and returns it.
  int32_t addValueNode(mlir::RankedTensorType type, ProblemNodes::ValueNode value, const Uses &uses);
  /// Adds the node of a result, which may be its maker's, and the edges to its readers. Returns the node, and in
  /// `bytes` the bytes of a value by the node's label.
  int32_t addResult(unsigned group, unsigned result, std::vector<int64_t> &bytes);
  /// Adds the edges to the readers of a value from its node, whose labels are the layouts `found`.
  void addUses(int32_t source, mlir::RankedTensorType type, const std::vector<plan::LayoutAttr> &found,
               const Uses &uses);
  /// Returns the nanoseconds of a step in which each micro-batch brings `count` values from `found` to the layout that
  /// a reader wants.
  int64_t getReadCost(int64_t count, mlir::RankedTensorType type, plan::LayoutAttr found, plan::LayoutAttr wanted,
                      bool isStashed);
  /// Returns the bytes of a rank's part of a value by layout.
  std::vector<int64_t> getLocalBytes(mlir::RankedTensorType type, const std::vector<plan::LayoutAttr> &layouts) const;

  const Groups &groups;
  const RecomputeClasses &recompute;
  const plan::StrategyChoice base;
  Reshards reshards;
  Labels labels;
  ProblemBuilder builder;
  ProblemNodes nodes;
  /// The costs by parameter group.
  std::vector<ParameterCosts> parameterCosts;
  std::vector<ChosenMemory> chosenMemory;
};

} // namespace windlass::planner

#endif
