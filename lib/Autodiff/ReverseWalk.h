// The reverse walk: adjoints of forward operators, in reverse order.
#ifndef WINDLASS_LIB_AUTODIFF_REVERSEWALK_H
#define WINDLASS_LIB_AUTODIFF_REVERSEWALK_H

#include "mlir/IR/Block.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/Value.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"

namespace windlass::train {

/// Gradients of parameters, by symbol.
using ParameterGradients = llvm::DenseMap<mlir::StringAttr, mlir::Value>;

/// Appends to `block`, which holds the forward operators, the gradient of `loss` scaled by `seed`, and by the run's
/// loss scale where wanted, with respect to the active reads. Every operator that is added carries `train.forward` and
/// an id. Reports all operators that cannot be differentiated before it fails.
mlir::FailureOr<ParameterGradients> buildBackward(mlir::Block &block, mlir::Value loss, double seed, bool scalesLoss,
                                                  const llvm::DenseSet<mlir::Value> &active);

} // namespace windlass::train

#endif
