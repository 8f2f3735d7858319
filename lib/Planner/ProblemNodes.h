// Which node of a range's problem stands for what, and plans as its solutions.
#ifndef WINDLASS_LIB_PLANNER_PROBLEMNODES_H
#define WINDLASS_LIB_PLANNER_PROBLEMNODES_H

#include "Counterparts.h"
#include "Labels.h"

#include "windlass/Search/Problem.h"

namespace windlass::planner {

/// The nodes whose labels say what is planned: one for each group of operators, then one for each group of parameters,
/// then those of values. Nodes behind these follow from them.
class ProblemNodes {
public:
  /// A value that is a node: a result of a group's operators, or a value of the border.
  struct ValueNode {
    /// All members' results; they choose alike.
    std::vector<mlir::Value> values;
    /// By label.
    std::vector<plan::LayoutAttr> layouts;
    int32_t node;
  };

  /// All that is referred to outlives this object.
  ProblemNodes(const Groups &groups, const Labels &labels, const plan::StrategyChoice &base)
      : groups(groups), labels(labels), base(base) {}

  static int32_t ofOperator(unsigned group) { return static_cast<int32_t>(group); }
  int32_t ofParameter(unsigned group) const {
    return static_cast<int32_t>(groups.getOperators().size()) + static_cast<int32_t>(group);
  }
  void clearValues() { values.clear(); }
  void addValue(ValueNode value) { values.push_back(std::move(value)); }

  /// Returns what a solution chooses for the operators and parameters of the range.
  plan::StrategyChoice decode(const search::Solution &solution) const;

  /// Returns the solution that a copy of the module at L3 is after `choice`; nothing where a label for something is
  /// missing. Repeats are taken to be as their first ones.
  std::optional<search::Solution> encode(const plan::StrategyChoice &choice, const Counterparts &planned) const;

private:
  const Groups &groups;
  const Labels &labels;
  const plan::StrategyChoice &base;
  std::vector<ValueNode> values;
};

} // namespace windlass::planner

#endif
