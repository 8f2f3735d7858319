// Which operator of the model a command belongs to where it lowers an operation without an id.
#ifndef WINDLASS_DIALECT_SCHED_ANALYSIS_OWNER_H
#define WINDLASS_DIALECT_SCHED_ANALYSIS_OWNER_H

#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/Operation.h"
#include "mlir/IR/SymbolTable.h"

namespace windlass::sched {

/// Returns the id of an operation of level L4. For an operation without one, such as a collective of a reshard, returns
/// the id of the operation that makes its first operand, or the name of the parameter, input or other resource that the
/// operand comes from or the result goes to. Null only where there is none of these. `symbols` are those of the
/// program.
mlir::StringAttr getOwner(mlir::Operation *op, const mlir::SymbolTable &symbols);

} // namespace windlass::sched

#endif
