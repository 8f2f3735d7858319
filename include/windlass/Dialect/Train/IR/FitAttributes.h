// Attributes of operators that are computed at other sizes: a rank's part of them, or several micro-batches at once.
#ifndef WINDLASS_DIALECT_TRAIN_IR_FITATTRIBUTES_H
#define WINDLASS_DIALECT_TRAIN_IR_FITATTRIBUTES_H

#include "mlir/IR/Operation.h"

#include <string>

namespace windlass::train {

/// Makes the attributes of `resized`, a clone of `op` whose operands and results have other sizes, hold those sizes.
/// Returns what is wrong where the same operator cannot compute them, as the end of a sentence about it; else nothing.
std::string fitAttributes(mlir::Operation &op, mlir::Operation *resized);

} // namespace windlass::train

#endif
