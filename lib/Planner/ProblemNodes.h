// The nodes of a range's problem by what they stand for, and plans as solutions of the problem.
#ifndef WINDLASS_LIB_PLANNER_PROBLEMNODES_H
#define WINDLASS_LIB_PLANNER_PROBLEMNODES_H

#include "Counterparts.h"
#include "Labels.h"

#include "windlass/Search/Problem.h"

namespace windlass::planner {

/// The nodes whose labels are the plan: one for each group of operators, then one for each group of parameters, then
/// those of values. Nodes behind these follow from them.
class ProblemNodes {
public:
  /// A value that is a node: a result of a group's operators, or a value of the border.
  struct ValueNode {
    /// The results of all members, which choose alike.
    std::vector<mlir::Value> values;
    /// The layouts by label.
    std::vector<plan::LayoutAttr> layouts;
    int32_t node;
  };

  /// Refers to its arguments, which outlive this object.
  ProblemNodes(const Groups &groups, const Labels &labels, const plan::StrategyChoice &base)
      : groups(groups), labels(labels), base(base) {}

  static int32_t ofOperator(unsigned group) { return static_cast<int32_t>(group); }
  int32_t ofParameter(unsigned group) const {
    return static_cast<int32_t>(groups.getOperators().size()) + static_cast<int32_t>(group);
  }
  void clearValues() { values.clear(); }
  void addValue(ValueNode value) { values.push_back(std::move(value)); }

  /// Returns the choice of a solution for the operators and parameters of the range.
  plan::StrategyChoice decode(const search::Solution &solution) const;

  /// Returns the solution that describes a copy of the module at L3 after `choice`; nothing where a label is missing.
  /// Repeats are assumed to be like their first ones.
  std::optional<search::Solution> encode(const plan::StrategyChoice &choice, const Counterparts &planned) const;

private:
  const Groups &groups;
  const Labels &labels;
  const plan::StrategyChoice &base;
  std::vector<ValueNode> values;
};

} // namespace windlass::planner

#endif
