// What may be chosen on one mesh: strategies of operators, layouts and degrees of sharing of parameters.
#ifndef WINDLASS_LIB_PLANNER_LABELS_H
#define WINDLASS_LIB_PLANNER_LABELS_H

#include "Groups.h"
#include "ParameterCosts.h"

#include "windlass/Dialect/Plan/Transforms/Propagation.h"
#include "windlass/Dialect/Plan/Transforms/StrategyChoice.h"

namespace windlass::planner {

struct OperatorLabel {
  plan::StrategyAttr strategy;
  llvm::SmallVector<plan::LayoutAttr, 4> operands;
  llvm::SmallVector<plan::LayoutAttr, 2> results;
  /// Of one execution, with what a split inner reduction communicates.
  int64_t picoseconds = 0;
};

class Labels {
public:
  /// Axes that may split operators: all of the mesh but those of replicas. What is pinned is all that there is for its
  /// operator or parameter. Threads change nothing of the labels.
  Labels(const Groups &groups, const Reshards &reshards, const CostModel &costs, const plan::Pins &pins, int threads);

  const std::vector<OperatorLabel> &ofOperator(unsigned group) const { return operators[group]; }
  const std::vector<ParameterLabel> &ofParameter(unsigned group) const { return parameters[group]; }
  /// The pin that no label obeys; empty where everything has labels.
  std::string findUnmetPin() const;
  /// Those of the ranks that hold the same part of each weight.
  llvm::ArrayRef<mlir::StringAttr> getDataAxes() const { return dataAxes; }

private:
  /// A factor, and in how many equal blocks an axis splits it.
  using Split = std::pair<unsigned, int64_t>;
  void findSplits();
  std::vector<plan::Splits> listSplits(unsigned group) const;
  void makeOperatorLabels(unsigned group);
  void makeParameterLabels(unsigned group);
  /// The one layout in which operators may find a parameter; null where that is free.
  plan::LayoutAttr getPinnedRead(unsigned group) const;
  /// Lets a parameter's copies lie as they are pinned; false where they do not.
  bool obeyPins(unsigned group, ParameterLabel &label) const;
  int64_t getInnerCost(mlir::Operation *op, const train::OpFactors &factors, const OperatorLabel &label) const;

  const Groups &groups;
  const Reshards &reshards;
  const CostModel &costs;
  const plan::Pins &pins;
  plan::MeshAttr mesh;
  llvm::SmallVector<mlir::StringAttr> workAxes, dataAxes;
  std::vector<train::OpFactors> factors;
  /// By operator group.
  std::vector<std::set<Split>> splits;
  std::vector<std::vector<OperatorLabel>> operators;
  std::vector<std::vector<ParameterLabel>> parameters;
};

} // namespace windlass::planner

#endif
