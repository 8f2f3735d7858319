// The strides of buffers.
#ifndef WINDLASS_DIALECT_SCHED_IR_STRIDES_H
#define WINDLASS_DIALECT_SCHED_IR_STRIDES_H

#include "mlir/IR/BuiltinTypes.h"

#include <algorithm>
#include <optional>

namespace windlass::sched {

/// Returns the strides of a type's dims, in elements; none where its layout has none. The strides of a dense type are
/// computed here: MLIR derives them from affine expressions, which took a tenth of the time of a search.
inline std::optional<llvm::SmallVector<int64_t>> getStrides(mlir::MemRefType type) {
  llvm::SmallVector<int64_t> strides;
  if (type.getLayout().isIdentity() && type.hasStaticShape()) {
    int64_t stride = 1;
    for (int64_t size : llvm::reverse(type.getShape())) {
      strides.push_back(stride);
      stride *= size;
    }
    std::reverse(strides.begin(), strides.end());
    return strides;
  }
  int64_t offset;
  if (failed(type.getStridesAndOffset(strides, offset)))
    return std::nullopt;
  return strides;
}

} // namespace windlass::sched

#endif
