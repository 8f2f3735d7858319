// Which operator of the model a command belongs to where it lowers an operation that bears no id.
#ifndef WINDLASS_DIALECT_SCHED_ANALYSIS_OWNER_H
#define WINDLASS_DIALECT_SCHED_ANALYSIS_OWNER_H

#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/Operation.h"

namespace windlass::sched {

/// The id of an operation of level L4; where it has none, as what moves values between layouts, the id of what makes
/// its first operand, or the name of the parameter, input or other resource that the operand comes from or the result
/// goes to. Null only where there is none of these.
mlir::StringAttr getOwner(mlir::Operation *op);

} // namespace windlass::sched

#endif
