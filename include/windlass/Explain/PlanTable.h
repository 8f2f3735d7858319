// A plan's operators as a table, repeats of a block in one row.
#ifndef WINDLASS_EXPLAIN_PLANTABLE_H
#define WINDLASS_EXPLAIN_PLANTABLE_H

#include "mlir/IR/BuiltinOps.h"

#include <string>

namespace windlass {

/// Makes the table of a module at L3: the products, lookups, attentions and losses of the forward pass, how each is
/// split and how its weight is laid out between steps. Empty for a mesh of one rank. Has at most `mostRows` rows, and
/// then the number of the others.
std::string makePlanTable(mlir::ModuleOp planned, size_t mostRows);

} // namespace windlass

#endif
