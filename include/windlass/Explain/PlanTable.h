// A plan's operators as a table, repeats of a block in one row.
#ifndef WINDLASS_EXPLAIN_PLANTABLE_H
#define WINDLASS_EXPLAIN_PLANTABLE_H

#include "windlass/Dialect/Plan/IR/PlanText.h"

#include "mlir/IR/BuiltinOps.h"

#include <string>
#include <vector>

namespace windlass {

/// Operators that differ in nothing but the block that they are of.
struct PlanRow {
  /// Their ids, with a range of numbers for the blocks.
  std::string operators;
  plan::SplitWords split;
  /// How the weight that they take is laid out between steps; empty without one.
  std::string weight;
  int64_t count = 0;
};

/// Lists the products, lookups, attentions and losses of the forward pass of a module at L3, in program order; none for
/// a mesh of one rank.
std::vector<PlanRow> listPlanRows(mlir::ModuleOp planned);

/// Prints rows as a table of at most `mostRows` lines, and then the number of the others.
std::string makePlanTable(llvm::ArrayRef<PlanRow> rows, size_t mostRows);

} // namespace windlass

#endif
