// Which matmuls and embeddings Megatron's tensor parallelism splits.
#ifndef WINDLASS_LIB_DIALECT_PLAN_TRANSFORMS_MODELPARALLEL_H
#define WINDLASS_LIB_DIALECT_PLAN_TRANSFORMS_MODELPARALLEL_H

#include "windlass/Dialect/Plan/Transforms/Propagation.h"

namespace windlass::plan {

/// Matmuls of the forward pass by a weight whose columns are split over `axes`, because what they make stays split
/// until other matmuls sum over it: the up and gate projections of an MLP before its down projection, the projections
/// of attention, whose heads are split, before the output projection. So is an output layer whose classes a cross
/// entropy reduces: the loss is computed on parts of the vocabulary. A matmul whose columns meet an operator that
/// cannot work on parts, or whose split `axes` do not divide, or that comes to a pinned operator, is not among them.
/// And embeddings of an input's ids, with their gradients, whose table's rows are split: the largest table, that of
/// tokens. Where it is the output layer too, both are split or none.
/// (Shoeybi et al.: Megatron-LM, arXiv:1909.08053, section 3.)
llvm::DenseMap<mlir::Operation *, Splits>
findModelParallel(mlir::func::FuncOp function, llvm::ArrayRef<mlir::StringAttr> axes, MeshAttr mesh, const Pins &pins);

} // namespace windlass::plan

#endif
