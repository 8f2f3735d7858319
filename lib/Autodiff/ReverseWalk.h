// The reverse walk: adjoints of forward operators, in reverse order.
#ifndef WINDLASS_LIB_AUTODIFF_REVERSEWALK_H
#define WINDLASS_LIB_AUTODIFF_REVERSEWALK_H

#include "mlir/IR/Block.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/Value.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"

#include <optional>

namespace windlass::train {

/// The gradients of parameters, by symbol.
using ParameterGradients = llvm::DenseMap<mlir::StringAttr, mlir::Value>;

/// The start of the reverse walk: at `root`, whose gradient is `share`, or 1 over the step's labels where that is
/// empty.
struct ReverseStart {
  mlir::Value root;
  std::optional<double> share;
  /// Whether the run's loss scale multiplies it.
  bool scalesLoss = false;
};

/// Appends to `block`, which holds the forward operators, the gradients from `start` with respect to the active reads.
/// Every operator that is added carries `train.forward` and an id. Reports all operators that cannot be differentiated
/// before it fails.
mlir::FailureOr<ParameterGradients> buildBackward(mlir::Block &block, const ReverseStart &start,
                                                  const llvm::DenseSet<mlir::Value> &active);

} // namespace windlass::train

#endif
