// The problem of labels that planning a range of operators on one mesh is.
#ifndef WINDLASS_LIB_PLANNER_RANGEPROBLEM_H
#define WINDLASS_LIB_PLANNER_RANGEPROBLEM_H

#include "ProblemNodes.h"
#include "RecomputeChoice.h"

namespace windlass::planner {

/// Nodes are operator groups, parameter groups, and those values that are read in more than one place, whose layout is
/// pinned, or that other ranges make: their label is the one layout in which they are found. How a value comes over the
/// border costs nothing here. Costs are nanoseconds of a step (the largest cost that a problem may have is 10^16, in
/// picoseconds less than three hours); what each micro-batch does counts m times. Operators and the collectives of
/// parameters and gradients are on the streams of the setting's windows; reshards of values are exposed.
class RangeProblem {
public:
  /// `choice` has the mesh and what is pinned; its axes of replicas each run other micro-batches. `costs` are of the
  /// mesh's devices. All but `choice` and `setting` outlive this object.
  RangeProblem(const Groups &groups, const RecomputeClasses &recompute, const CostModel &costs,
               const plan::StrategyChoice &choice, const RangeSetting &setting);
  RangeProblem(const RangeProblem &) = delete;

  /// The mesh and what is pinned.
  const plan::StrategyChoice &getBase() const { return base; }
  /// The pin that no label obeys, in which case no problem may be built; empty where everything has labels.
  std::string findUnmetPin() const { return labels.findUnmetPin(); }

  /// Builds the problem with `parts` of `kRecomputeParts` of the blocks recomputed.
  search::Problem build(int parts);
  /// Builds the problem with nothing recomputed in its memory, but these operators in its costs.
  search::Problem buildWithRecompute(const RecomputeCounts &counts);
  /// Builds the problem that chooses what is recomputed too, for each class of blocks: a node for each, whose labels
  /// are the class's. No plan costs less than the Lagrangean bounds of this problem, whichever blocks of a class choose
  /// what: a Lagrangean is linear in their shares, so least where all choose one, and shares are of all blocks but one
  /// (`Lifetimes::getRunsByLabel`), of which an operator is recomputed at least so often.
  search::Problem buildWithRecomputeChoice();

  /// Returns what a solution of the problem built last chooses.
  plan::StrategyChoice decode(const search::Solution &solution) const { return nodes.decode(solution); }

  /// Returns the solution of the problem built last that a copy of the module at L3 is after `choice`; nothing where a
  /// label for something is missing. Repeats are taken to be as their first ones.
  std::optional<search::Solution> encode(const plan::StrategyChoice &choice, const Counterparts &planned) const {
    return nodes.encode(choice, planned);
  }

private:
  search::Problem build(const Lifetimes &lifetimes, const RecomputeCounts &counts, bool choosesRecompute);
  /// Adds the operators; `counts` are recomputed.
  void addOperators(const RecomputeCounts &counts);
  void addParameters(const Lifetimes &lifetimes);
  void addParameter(unsigned group, const Lifetimes &lifetimes);
  /// Adds the values, the edges to their makers and readers, and what they take in memory, which depends on what is
  /// recomputed where `choosesRecompute`.
  void addValues(const Lifetimes &lifetimes, bool choosesRecompute);
  void addBorder(const Lifetimes &lifetimes, bool choosesRecompute);
  /// Adds the edges from parameters to their readers.
  void addReads();
  /// Adds the reshards of the function's arguments.
  void addArguments();
  /// Returns the layout of a value that is pinned; null where it is found in any.
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
  /// Returns the nanoseconds of a step in which each micro-batch brings `count` values to the layout that a reader
  /// wants.
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
  /// By parameter group.
  std::vector<ParameterCosts> parameterCosts;
  std::vector<ChosenMemory> chosenMemory;
};

} // namespace windlass::planner

#endif
