// Strided windows onto storages, before storages have offsets.
#ifndef WINDLASS_LIB_DIALECT_SCHED_TRANSFORMS_VIEWS_H
#define WINDLASS_LIB_DIALECT_SCHED_TRANSFORMS_VIEWS_H

#include "windlass/Dialect/Sched/IR/Place.h"
#include "windlass/Support/TensorBytes.h"

#include "mlir/IR/BuiltinTypes.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"

#include <optional>

namespace windlass::sched {

/// Views of the runtime have at most this many dims.
constexpr int64_t kMaxViewRank = 8;

/// A window onto storage `storage`, `offset` bytes behind its start. Sizes and strides count elements.
struct View {
  unsigned storage = 0;
  int64_t offset = 0;
  mlir::Type element;
  llvm::SmallVector<int64_t, 4> sizes;
  llvm::SmallVector<int64_t, 4> strides;

  int64_t getElements() const;
  int64_t getRank() const { return static_cast<int64_t>(sizes.size()); }
  /// Whether elements follow each other in row-major order without holes.
  bool isDense() const;
  /// Whether neighbours along the last dim are neighbours in memory.
  bool hasUnitInnerStride() const;
  bool operator==(const View &other) const;

  static View dense(unsigned storage, mlir::RankedTensorType type);
  /// Returns the view whose dim i is dim permutation[i].
  View permuted(llvm::ArrayRef<int64_t> permutation) const;
  /// Returns the view of shape `sizes` whose dim dims[i] is dim i; the other dims repeat.
  View broadcasted(llvm::ArrayRef<int64_t> dims, llvm::ArrayRef<int64_t> sizes) const;
  View sliced(llvm::ArrayRef<int64_t> starts, llvm::ArrayRef<int64_t> sizes) const;
  /// Returns the same elements in row-major order under another shape; none where no strides describe it.
  std::optional<View> reshaped(llvm::ArrayRef<int64_t> sizes) const;

  mlir::MemRefType getType() const;
};

} // namespace windlass::sched

#endif
