// Names of operands, as ids of adjoints spell them.
#ifndef WINDLASS_LIB_AUTODIFF_OPERANDNAMES_H
#define WINDLASS_LIB_AUTODIFF_OPERANDNAMES_H

#include "mlir/IR/Operation.h"

#include <string>

namespace windlass::train {

/// Returns the name of an operand in the operator's definition; elements of a variadic operand are numbered.
std::string getOperandName(mlir::Operation *op, unsigned index);

} // namespace windlass::train

#endif
