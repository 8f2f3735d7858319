// The matmuls and embeddings that Megatron's tensor parallelism splits.
#ifndef WINDLASS_LIB_DIALECT_PLAN_TRANSFORMS_MODELPARALLEL_H
#define WINDLASS_LIB_DIALECT_PLAN_TRANSFORMS_MODELPARALLEL_H

#include "windlass/Dialect/Plan/Transforms/Propagation.h"

namespace windlass::plan {

/// Returns the matmuls of the forward pass by a weight whose columns are split over `axes`, because their results stay
/// split until other matmuls sum over them: the up and gate projections of an MLP before its down projection, the
/// projections of attention, whose heads are split, before the output projection. So is an output layer whose classes a
/// cross entropy reduces: the loss is computed on parts of the vocabulary. A matmul is not among them if its columns
/// reach an operator that cannot work on parts or that is pinned, or if `axes` do not divide them. Also returns the
/// embeddings of an input's ids, with their gradients, whose table's rows are split: those of the largest table, the
/// tokens'. Where this is also the output layer's weight, both are split or neither. (Shoeybi et al.: Megatron-LM,
/// arXiv:1909.08053, section 3.)
llvm::DenseMap<mlir::Operation *, Splits>
findModelParallel(mlir::func::FuncOp function, llvm::ArrayRef<mlir::StringAttr> axes, MeshAttr mesh, const Pins &pins);

} // namespace windlass::plan

#endif
