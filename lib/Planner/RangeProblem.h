// Builds the problem of labels that planning a range of operators on one mesh is.
#ifndef WINDLASS_LIB_PLANNER_RANGEPROBLEM_H
#define WINDLASS_LIB_PLANNER_RANGEPROBLEM_H

#include "ProblemBuilder.h"
#include "ProblemNodes.h"
#include "RecomputeClasses.h"

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
  /// Builds the problem whose solutions cost no more than the simulated step of the plan that they stand for
  /// (`BoundPrices`). It also chooses what is recomputed: it has a node for each class of blocks, whose labels are the
  /// class's. No step is shorter than the Lagrangean bounds of this problem, whichever blocks of a class choose which
  /// label: a Lagrangean is linear in the labels' shares, so it is least where all blocks choose one label, and shares
  /// are of all blocks but one (`Lifetimes::getRunsByLabel`), which bounds from below how often an operator is
  /// recomputed. Nodes behind those of the other problems follow from the labels of their neighbours.
  ///
  /// With a `pipeline` of S positions, which is null for none, the steps are those of pipelines that are cut and
  /// scheduled as it says, each of their positions on the mesh. A solution costs no more than S times the step of the
  /// plan that it stands for (`BoundPrices`). The memory is that of one rank of each position, together.
  /// A row bounds it: when the forward pass of a micro-batch has ended and its backward pass has not begun, the
  /// positions hold at least all copies of parameters and the stash of this micro-batch. A second row bounds that of
  /// the first position, with the stashes of its micro-batches in flight, where the schedule says how many these are.
  search::Problem buildBound(plan::PipelineAttr pipeline);
  /// Builds the same problem without that choice, for a plan that recomputes the operators `counts`.
  search::Problem buildBoundWithRecompute(const RecomputeCounts &counts, plan::PipelineAttr pipeline);

  /// Returns the choice of a solution of the problem that was built last.
  plan::StrategyChoice decode(const search::Solution &solution) const { return nodes.decode(solution); }

  /// Returns the solution of the problem that was built last which describes a copy of the module at L3 after `choice`;
  /// nothing where a label is missing. Repeats are assumed to be like their first ones.
  std::optional<search::Solution> encode(const plan::StrategyChoice &choice, const Counterparts &planned) const {
    return nodes.encode(choice, planned);
  }

private:
  search::Problem build(const Lifetimes &lifetimes, const RecomputeCounts &counts);
  search::Problem buildBound(const RecomputeCounts &counts, bool choosesRecompute, plan::PipelineAttr pipeline);

  const Groups &groups;
  const RecomputeClasses &recompute;
  const CostModel &costs;
  const plan::StrategyChoice base;
  Reshards reshards;
  Labels labels;
  ProblemBuilder builder;
  ProblemNodes nodes;
  /// The costs by parameter group.
  std::vector<ParameterCosts> parameterCosts;
};

} // namespace windlass::planner

#endif
