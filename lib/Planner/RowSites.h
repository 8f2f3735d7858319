// Where rows of tokens go to layers of experts and come back: they may be exchanged by what tokens choose.
#ifndef WINDLASS_LIB_PLANNER_ROWSITES_H
#define WINDLASS_LIB_PLANNER_ROWSITES_H

#include "RangePrices.h"
#include "Reshards.h"

namespace windlass::planner {

/// The layer of experts at a site.
struct RowSite {
  unsigned group;
  /// The operand with the experts' first matrices.
  unsigned matrices;
  RowRoute route;

  /// Returns the axes over which a label of the group splits the experts.
  llvm::ArrayRef<mlir::StringAttr> getAxes(const OperatorLabel &label) const {
    return label.operands[matrices].getDims()[0].getFactors()[0].getAxes();
  }
};

/// Returns the layer whose rows a site reshards; none where it reshards something else.
std::optional<RowSite> findRowSite(const Groups &groups, const ReshardSite &site);

} // namespace windlass::planner

#endif
