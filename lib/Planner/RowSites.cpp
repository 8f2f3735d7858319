#include "RowSites.h"

using namespace mlir;
using namespace windlass;
using namespace windlass::planner;

/// Returns the site at a layer of experts; `isReader`: its rows are an operand.
static RowSite makeSite(unsigned group, Operation *op, bool isReader) {
  auto describe = [&](auto layer) {
    int64_t experts = cast<RankedTensorType>(layer.getUp().getType()).getDimSize(0),
            chosen = cast<RankedTensorType>(layer.getChoices().getType()).getDimSize(1);
    return RowSite{group, layer.getUpMutable().getOperandNumber(), {experts, chosen, isReader}};
  };
  if (auto experts = dyn_cast<train::ExpertsOp>(op))
    return describe(experts);
  return describe(cast<train::ExpertsGradOp>(op));
}

std::optional<RowSite> planner::findRowSite(const Groups &groups, const ReshardSite &site) {
  auto getOperator = [&](unsigned group) { return groups.getOperators()[group].front(); };
  if (site.kind == ReshardSite::Kind::used) {
    Operation *reader = getOperator(site.use.group);
    // The gradient reads rows of gradients and of inputs.
    unsigned rows = isa<train::ExpertsOp>(reader) ? 1 : isa<train::ExpertsGradOp>(reader) ? 2 : 0;
    if (site.use.operand < rows)
      return makeSite(site.use.group, reader, /*isReader=*/true);
  }
  if (site.result && site.result->second == 0)
    if (Operation *maker = getOperator(site.result->first); isa<train::ExpertsOp, train::ExpertsGradOp>(maker))
      return makeSite(site.result->first, maker, /*isReader=*/false);
  return std::nullopt;
}
