// The choices on one mesh: strategies of operators, layouts of parameters, and which of their copies are shards.
#ifndef WINDLASS_LIB_PLANNER_LABELS_H
#define WINDLASS_LIB_PLANNER_LABELS_H

#include "Groups.h"
#include "ParameterCosts.h"

#include "windlass/Dialect/Plan/Transforms/Propagation.h"
#include "windlass/Dialect/Plan/Transforms/StrategyChoice.h"

namespace windlass::planner {

/// A strategy of an operator, and the layouts that follow from it.
struct OperatorLabel {
  plan::StrategyAttr strategy;
  llvm::SmallVector<plan::LayoutAttr, 4> operands;
  llvm::SmallVector<plan::LayoutAttr, 2> results;
  /// The work of one execution on a rank; none for operators that cost nothing.
  OperatorWork work;
  /// The time of one execution, including the communication of a split inner reduction.
  int64_t picoseconds = 0;
};

/// The labels of all groups on one mesh.
class Labels {
public:
  /// Lists the labels. All axes of the mesh but those of replicas may split operators. A pinned operator or parameter
  /// has only the labels that obey the pin. The number of threads does not change the labels. All references outlive
  /// this object.
  Labels(const Groups &groups, const Reshards &reshards, const CostModel &costs, const plan::Pins &pins, int threads);

  const std::vector<OperatorLabel> &ofOperator(unsigned group) const { return operators[group]; }
  const std::vector<ParameterLabel> &ofParameter(unsigned group) const { return parameters[group]; }
  /// Returns a pin that no label obeys; empty where everything has labels.
  std::string findUnmetPin() const;

private:
  /// A factor, and the number of equal blocks in each of which an axis splits it.
  using Split = std::pair<unsigned, int64_t>;
  void findSplits();
  std::vector<plan::Splits> listSplits(unsigned group) const;
  void makeOperatorLabels(unsigned group);
  void makeParameterLabels(unsigned group);
  /// Returns the one layout in which operators may find a parameter; null where no pin fixes it.
  plan::LayoutAttr getPinnedRead(unsigned group) const;
  /// Gives a parameter's copies their pinned layouts; returns false where they cannot have them.
  bool obeyPins(unsigned group, ParameterLabel &label) const;
  int64_t getInnerCost(mlir::Operation *op, const train::OpFactors &factors, const OperatorLabel &label) const;
  int64_t getHaloCost(mlir::Operation *op, const train::OpFactors &factors, const OperatorLabel &label) const;

  const Groups &groups;
  const Reshards &reshards;
  const CostModel &costs;
  const plan::Pins &pins;
  plan::MeshAttr mesh;
  llvm::SmallVector<mlir::StringAttr> workAxes;
  std::vector<train::OpFactors> factors;
  /// By operator group.
  std::vector<std::set<Split>> splits;
  std::vector<std::vector<OperatorLabel>> operators;
  std::vector<std::vector<ParameterLabel>> parameters;
};

} // namespace windlass::planner

#endif
