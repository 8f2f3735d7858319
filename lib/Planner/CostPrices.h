// The costs that the search minimises.
#ifndef WINDLASS_LIB_PLANNER_COSTPRICES_H
#define WINDLASS_LIB_PLANNER_COSTPRICES_H

#include "ProblemNodes.h"
#include "RangePrices.h"

namespace windlass::planner {

/// The costs by which the search ranks plans: operators and the collectives of parameters and gradients are on the
/// streams of the setting's windows; reshards of values are exposed. They tell more of a plan than a bound may, such as
/// launches of operators that may be fused, and so they may be above the time of a step.
class CostPrices : public RangePrices {
public:
  /// Refers to its arguments, which outlive this object.
  CostPrices(const Groups &groups, const Labels &labels, Reshards &reshards,
             const std::vector<ParameterCosts> &parameterCosts, ProblemBuilder &builder)
      : groups(groups), labels(labels), reshards(reshards), parameterCosts(parameterCosts), builder(builder) {}

  void addOperators(int32_t node, unsigned group, int64_t recomputed) override;
  std::vector<int64_t> getRecomputeTimes(unsigned group) const override;
  void addRecompute(int32_t node, const std::vector<ProblemBuilder::Work> &works) override;
  void addParameters(int32_t node, unsigned group) override;
  int64_t getStashCost(int64_t count, mlir::RankedTensorType type, plan::LayoutAttr layout) override;
  void addReshards(int32_t from, int32_t to, const ReshardSite &site, const EdgeLayouts &layouts) override;
  void addArgument(const ReshardSite &site, plan::LayoutAttr layout) override;
  void addGradients(int32_t from, int32_t to, unsigned parameter, int64_t count,
                    const std::vector<plan::LayoutAttr> &found) override;

private:
  int64_t getReshardCost(const ReshardSite &site, plan::LayoutAttr from, plan::LayoutAttr to);

  const Groups &groups;
  const Labels &labels;
  Reshards &reshards;
  const std::vector<ParameterCosts> &parameterCosts;
  ProblemBuilder &builder;
};

} // namespace windlass::planner

#endif
