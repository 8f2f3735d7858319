// Puts the problem of a range together: its nodes and edges, and the memory that labels take.
#ifndef WINDLASS_LIB_PLANNER_RANGEASSEMBLY_H
#define WINDLASS_LIB_PLANNER_RANGEASSEMBLY_H

#include "ProblemNodes.h"
#include "RangePrices.h"
#include "RecomputeChoice.h"

namespace windlass::planner {

/// Assembles one problem of a range. What labels cost is up to the prices.
class RangeAssembly {
public:
  /// Refers to its arguments, which outlive this object. The values of `nodes` are made anew.
  RangeAssembly(const Groups &groups, const RecomputeClasses &recompute, const plan::StrategyChoice &base,
                const Labels &labels, const std::vector<ParameterCosts> &parameterCosts, ProblemBuilder &builder,
                RangePrices &prices, ProblemNodes &nodes)
      : groups(groups), recompute(recompute), base(base), labels(labels), parameterCosts(parameterCosts),
        builder(builder), prices(prices), nodes(nodes) {}

  /// Returns the problem in which values live as `lifetimes` says and the operators `counts` are recomputed; or, where
  /// `choosesRecompute` holds, the one that has a node for each class of blocks, whose labels say what is recomputed.
  search::Problem build(const Lifetimes &lifetimes, const RecomputeCounts &counts, bool choosesRecompute);

private:
  /// Adds the operators, of which `counts` are recomputed.
  void addOperators(const RecomputeCounts &counts);
  void addParameter(unsigned group, const Lifetimes &lifetimes);
  /// Adds the bytes by label that a group's parameters take all the time.
  void addHeldBytes(int32_t node, unsigned group, plan::MemoryKind memory, std::vector<int64_t> bytes,
                    const Lifetimes &lifetimes);
  /// Adds the bytes of a group's values, `runs` by label of what is recomputed.
  void addChosenBytes(int32_t source, const OperatorGroup &group, const std::vector<int64_t> &bytes,
                      std::vector<std::vector<LiveRun>> runs, bool isOfFirst);
  /// Adds the values, the edges to their makers and readers, and the memory that they take, which depends on what is
  /// recomputed where `choosesRecompute` holds.
  void addValues(const Lifetimes &lifetimes, bool choosesRecompute);
  void addBorder(const Lifetimes &lifetimes, bool choosesRecompute);
  /// Adds the edges from parameters to their readers.
  void addReads();
  /// Adds the reshards of the function's arguments and of hyperparameters.
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
  void addUses(int32_t source, std::optional<std::pair<unsigned, unsigned>> result, mlir::RankedTensorType type,
               const std::vector<plan::LayoutAttr> &found, const Uses &uses);
  /// Returns the bytes of a rank's part of a value by layout.
  /// Returns the layouts in which the labels of a reader take its operand.
  std::vector<plan::LayoutAttr> getWanted(const Use &use) const;
  std::vector<int64_t> getLocalBytes(mlir::RankedTensorType type, const std::vector<plan::LayoutAttr> &layouts) const;

  const Groups &groups;
  const RecomputeClasses &recompute;
  const plan::StrategyChoice &base;
  const Labels &labels;
  const std::vector<ParameterCosts> &parameterCosts;
  ProblemBuilder &builder;
  RangePrices &prices;
  ProblemNodes &nodes;
  std::vector<ChosenMemory> chosenMemory;
};

} // namespace windlass::planner

#endif
