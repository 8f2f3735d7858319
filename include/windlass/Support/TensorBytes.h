// Bytes of tensors in memory and in files.
#ifndef WINDLASS_SUPPORT_TENSORBYTES_H
#define WINDLASS_SUPPORT_TENSORBYTES_H

#include "mlir/IR/BuiltinTypes.h"

namespace windlass {

/// Returns the bytes of one integer or float; a boolean takes one.
inline int64_t getElementBytes(mlir::Type element) { return (element.getIntOrFloatBitWidth() + 7) / 8; }

/// Returns the bytes of a dense tensor of static shape.
inline int64_t getTensorBytes(mlir::RankedTensorType type) {
  return type.getNumElements() * getElementBytes(type.getElementType());
}

} // namespace windlass

#endif
