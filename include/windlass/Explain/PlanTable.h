// A plan's operators as a table, repeats of a block in one row.
#ifndef WINDLASS_EXPLAIN_PLANTABLE_H
#define WINDLASS_EXPLAIN_PLANTABLE_H

#include "mlir/IR/BuiltinOps.h"

#include <string>

namespace windlass {

/// Of a module at L3: the products, lookups, attentions and losses of the forward pass, how each is split and how its
/// weight lies between steps. Empty where nothing is split. At most so many rows.
std::string makePlanTable(mlir::ModuleOp planned, size_t mostRows);

} // namespace windlass

#endif
