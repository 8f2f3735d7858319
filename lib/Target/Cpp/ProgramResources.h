// The resources of a program by what they are for.
#ifndef WINDLASS_LIB_TARGET_CPP_PROGRAMRESOURCES_H
#define WINDLASS_LIB_TARGET_CPP_PROGRAMRESOURCES_H

#include "windlass/Dialect/Sched/IR/Place.h"
#include "windlass/Dialect/Sched/IR/SchedOps.h"

namespace windlass::cpp {

/// Returns the name of an input, by which positions know that they read the same one.
mlir::StringAttr getInputName(sched::ResourceOp input);

struct ProgramResources {
  /// Collects the resources of a program of level L5. Fails with a diagnostic where one has no place.
  static llvm::FailureOr<ProgramResources> collect(sched::ProgramOp program);

  /// Returns what the optimizer and checkpoints use of a parameter: its master, or the parameter itself.
  sched::ResourceOp getMaster(sched::ResourceOp parameter) const;
  /// Returns the gradient as the update reads it.
  sched::ResourceOp getReduced(sched::ResourceOp gradient) const;

  sched::ProgramOp program;
  llvm::SmallVector<sched::ResourceOp> parameters, states, gradients, inputs, scalars, borders;
  sched::ResourceOp loss, gradNorm, evaluate;

private:
  /// The masters and the reduced gradients by parameter, where they are resources of their own.
  llvm::DenseMap<mlir::StringAttr, sched::ResourceOp> masters, reduced;
};

} // namespace windlass::cpp

#endif
