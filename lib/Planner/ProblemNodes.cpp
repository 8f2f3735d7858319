#include "ProblemNodes.h"

using namespace mlir;
using namespace windlass;
using namespace windlass::planner;

plan::StrategyChoice ProblemNodes::decode(const search::Solution &solution) const {
  plan::StrategyChoice choice = base;
  auto labelOf = [&](unsigned group) -> const OperatorLabel & {
    return labels.ofOperator(group)[solution[ofOperator(group)]];
  };
  for (auto [group, its] : llvm::enumerate(groups.getOperators())) {
    const OperatorLabel &label = labelOf(group);
    SmallVector<plan::LayoutAttr, 2> layouts(label.results);
    for (unsigned result = 0; result < layouts.size(); ++result) {
      Uses uses = groups.getUses(group, result);
      // A value that is read in one place is found as it is taken there.
      if (uses.size() == 1 && !uses.begin()->first.isStashed && groups.getGradients(group, result).empty())
        layouts[result] = labelOf(uses.begin()->first.group).operands[uses.begin()->first.operand];
    }
    for (Operation *op : its.ops)
      choice.pins.ops[op] = {label.strategy, layouts, "", ""};
  }
  for (const ValueNode &node : values)
    for (Value value : node.values)
      // The range of its maker decides how a value of the border is made.
      if (auto result = llvm::cast<OpResult>(value); groups.getGroup(result.getOwner()))
        choice.pins.ops[result.getOwner()].layouts[result.getResultNumber()] = node.layouts[solution[node.node]];
  for (auto [group, its] : llvm::enumerate(groups.getParameters())) {
    const ParameterLabel &label = labels.ofParameter(group)[solution[ofParameter(group)]];
    for (train::ParameterOp parameter : its.parameters) {
      choice.reads[parameter.getSymNameAttr()] = label.read;
      choice.parameters[parameter.getSymNameAttr()] = label.copies;
      if (plan::choosesMemories(parameter))
        choice.memories[parameter.getSymNameAttr()] = label.memories;
    }
  }
  return choice;
}

std::optional<search::Solution> ProblemNodes::encode(const plan::StrategyChoice &choice,
                                                     const Counterparts &planned) const {
  plan::MeshAttr mesh = base.mesh;
  search::Solution solution(ofParameter(groups.getParameters().size()) + values.size(), -1);
  auto areEqual = [&](ArrayRef<plan::LayoutAttr> a, ArrayRef<plan::LayoutAttr> b) {
    return llvm::all_of(llvm::zip_equal(a, b),
                        [&](auto pair) { return plan::haveSameParts(std::get<0>(pair), std::get<1>(pair), mesh); });
  };
  auto place = [&](int32_t node, const auto &candidates, const auto &isIt) {
    auto found = llvm::find_if(candidates, isIt);
    if (found != candidates.end())
      solution[node] = static_cast<int32_t>(found - candidates.begin());
    return found != candidates.end();
  };
  for (auto [group, its] : llvm::enumerate(groups.getOperators())) {
    Operation *op = planned.find(its.front());
    FailureOr<plan::OpLayouts> layouts = plan::inferLayouts(op, plan::getOperandLayouts(op), mesh);
    if (failed(layouts) || !place(ofOperator(group), labels.ofOperator(group), [&](const OperatorLabel &label) {
          return areEqual(label.operands, layouts->operands) && areEqual(label.results, layouts->results);
        }))
      return std::nullopt;
  }
  for (auto [group, its] : llvm::enumerate(groups.getParameters())) {
    plan::LayoutAttr read = plan::getLayout(planned.find(its.reads.front()->getResult(0)));
    train::ParameterOp parameter = its.parameters.front();
    plan::ParameterLayouts copies = plan::getCopies(choice, parameter.getSymNameAttr(), read, mesh);
    // The axes over which a gradient is still to be summed follow from its operators.
    auto getParts = [](const plan::ParameterLayouts &its) {
      return std::array{its.compute, plan::dropUnreduced(its.gradient), its.master};
    };
    auto chosen = choice.memories.find(parameter.getSymNameAttr());
    plan::CopyMemories memories = chosen != choice.memories.end() ? chosen->second : plan::getCopyMemories(parameter);
    bool choosesAll = parameter->hasAttr(plan::kMayOffloadAttr);
    // Otherwise memories are wishes, which a plan need not have met.
    auto areChosen = [&](const plan::CopyMemories &its) {
      return choosesAll ? its == memories : its.updatesOnDevice == memories.updatesOnDevice;
    };
    if (!place(ofParameter(group), labels.ofParameter(group), [&](const ParameterLabel &label) {
          return plan::haveSameParts(label.read, read, mesh) && areChosen(label.memories) &&
                 (!parameter.getTrainable() || areEqual(getParts(label.copies), getParts(copies)));
        }))
      return std::nullopt;
  }
  for (const ValueNode &node : values) {
    plan::LayoutAttr layout = plan::getLayout(planned.find(node.values.front()));
    if (!place(node.node, node.layouts,
               [&](plan::LayoutAttr other) { return plan::haveSameParts(other, layout, mesh); }))
      return std::nullopt;
  }
  return solution;
}
