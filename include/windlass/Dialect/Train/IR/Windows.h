// Windows that move over the spatial dims of [batch, channels, spatial..]: what convolutions and pooling share.
#ifndef WINDLASS_DIALECT_TRAIN_IR_WINDOWS_H
#define WINDLASS_DIALECT_TRAIN_IR_WINDOWS_H

#include "mlir/IR/Diagnostics.h"
#include "llvm/ADT/STLFunctionalExtras.h"

namespace windlass::train {

/// The attributes that say where windows lie. Each list has an entry for each spatial dim; `pads` has first the
/// elements before each dim, then those behind each.
struct Windows {
  /// Starts the diagnostic of a failed check.
  using Emit = llvm::function_ref<mlir::InFlightDiagnostic()>;

  /// The numbers of windows and the spatial sizes are below this bound, so that products of two are far from overflow.
  static constexpr int64_t kBound = int64_t(1) << 31;

  llvm::ArrayRef<int64_t> window, strides, dilations, pads;

  /// Returns the spatial sizes of the result for an input of the sizes `input`, [batch, channels, spatial..]. Fails,
  /// with a diagnostic, unless the input has one to three spatial dims, the lists fit it, all numbers are in range,
  /// and the padded input has room for a window.
  mlir::FailureOr<llvm::SmallVector<int64_t>> inferSpatial(Emit emit, llvm::ArrayRef<int64_t> input) const;
  /// Fails unless every window is certain to have an element inside of the input; `inferSpatial` must have succeeded.
  mlir::LogicalResult checkInside(Emit emit, llvm::ArrayRef<int64_t> input) const;
};

} // namespace windlass::train

#endif
