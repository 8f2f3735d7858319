// Collectives over simulated ranks.
#ifndef WINDLASS_LIB_INTERPRETER_COLLECTIVES_H
#define WINDLASS_LIB_INTERPRETER_COLLECTIVES_H

#include "Placement.h"

namespace windlass::interpreter {

/// The members of every communicator over the axes: ranks that differ on these axes only, in order of their
/// coordinates. Nothing where the mesh lacks an axis.
std::optional<std::vector<llvm::SmallVector<int64_t>>> communicatorsOver(plan::MeshAttr mesh, mlir::ArrayAttr axes);

/// `size` elements from `start` along `dim`.
Tensor sliceAlong(const Tensor &tensor, int64_t dim, int64_t start, int64_t size);
/// Tensors one after another along `dim`.
Tensor joinAlong(llvm::ArrayRef<Tensor> tensors, int64_t dim);
/// Element by element, in order.
Tensor combineAll(llvm::ArrayRef<Tensor> tensors, train::ReductionKind kind);

// Each takes the members' operands and gives the members' results.
llvm::SmallVector<Tensor> allReduce(llvm::ArrayRef<Tensor> members, train::ReductionKind kind);
llvm::SmallVector<Tensor> allGather(llvm::ArrayRef<Tensor> members, int64_t dim);
llvm::SmallVector<Tensor> reduceScatter(llvm::ArrayRef<Tensor> members, int64_t dim, train::ReductionKind kind);
llvm::SmallVector<Tensor> allToAll(llvm::ArrayRef<Tensor> members, int64_t splitDim, int64_t concatDim);
llvm::SmallVector<Tensor> permute(llvm::ArrayRef<Tensor> members, llvm::ArrayRef<int64_t> destinations);
llvm::SmallVector<Tensor> ownPart(llvm::ArrayRef<Tensor> members, int64_t dim);

} // namespace windlass::interpreter

#endif
