// What the kernels of L5 compute, on the tensors of one rank.
#ifndef WINDLASS_LIB_INTERPRETER_LAUNCHKERNELS_H
#define WINDLASS_LIB_INTERPRETER_LAUNCHKERNELS_H

#include "windlass/Dialect/Sched/IR/SchedOps.h"
#include "windlass/Interpreter/Interpreter.h"

namespace windlass::interpreter {

/// Rounds to what a buffer of such elements holds, as programs do where the option `rounds` is set.
void roundAsStored(mlir::Type element, bool rounds, Tensor &value);

/// A launch on one rank.
struct LaunchCall {
  mutable sched::LaunchOp op; // a handle; its accessors are not const
  plan::MeshAttr mesh;
  int64_t rank;
  Precision precision;
  /// Whether doubles are rounded where programs round (RunOptions::rounds), and then operands of products to TF32.
  bool rounds, roundsToTf32;
  llvm::ArrayRef<Tensor> inputs;
  /// The types of the results.
  llvm::ArrayRef<mlir::RankedTensorType> types;
  llvm::ArrayRef<ElementKind> kinds;

  void round(mlir::Type element, Tensor &value) const { roundAsStored(element, rounds, value); }
};

/// Computes the results, in the shapes and kinds of their buffers unless the command does not fit them. They are not
/// rounded yet: that happens when they are stored. Fails with a diagnostic at the command.
mlir::FailureOr<llvm::SmallVector<Tensor>> computeLaunch(const LaunchCall &call);

} // namespace windlass::interpreter

#endif
