// Collectives over simulated ranks.
#ifndef WINDLASS_LIB_INTERPRETER_COLLECTIVES_H
#define WINDLASS_LIB_INTERPRETER_COLLECTIVES_H

#include "Crossings.h"

namespace windlass::interpreter {

/// Returns the members of every communicator over the axes: ranks that differ on these axes only, in order of their
/// coordinates. Nothing where the mesh lacks an axis.
std::optional<std::vector<llvm::SmallVector<int64_t>>> communicatorsOver(plan::MeshAttr mesh, mlir::ArrayAttr axes);

/// Returns `size` elements from `start` along `dim`.
Tensor sliceAlong(const Tensor &tensor, int64_t dim, int64_t start, int64_t size);
/// Joins tensors one after another along `dim`.
Tensor joinAlong(llvm::ArrayRef<Tensor> tensors, int64_t dim);
/// Combines tensors element by element, in their order.
Tensor combineAll(llvm::ArrayRef<Tensor> tensors, train::ReductionKind kind);

/// Runs a collective `op` that combines values of several positions, as the position `position`. In each of these
/// positions, ranks that differ on the axes only combine their values. `mesh` is the mesh of `position`, and `own` has
/// the values of its ranks. Returns the results of its ranks, or an empty list while another position has not come to
/// the collective. Fails with a diagnostic at `op` where the positions do not fit together.
mlir::FailureOr<RankValues> allReduceOverPositions(mlir::Operation *op, plan::MeshAttr mesh, mlir::ArrayAttr axes,
                                                   train::ReductionKind kind, Crossings &crossings, int64_t position,
                                                   const RankValues &own);

// Each function takes the members' operands and returns the members' results.
llvm::SmallVector<Tensor> allReduce(llvm::ArrayRef<Tensor> members, train::ReductionKind kind);
llvm::SmallVector<Tensor> allGather(llvm::ArrayRef<Tensor> members, int64_t dim);
llvm::SmallVector<Tensor> reduceScatter(llvm::ArrayRef<Tensor> members, int64_t dim, train::ReductionKind kind);
llvm::SmallVector<Tensor> allToAll(llvm::ArrayRef<Tensor> members, int64_t splitDim, int64_t concatDim);
llvm::SmallVector<Tensor> permute(llvm::ArrayRef<Tensor> members, llvm::ArrayRef<int64_t> destinations);
/// Returns what each member gets of the rows of all members' tokens: those of tokens that choose one of its experts, of
/// which each member has an equal part; all other rows are 0. `choices` are those of all tokens.
llvm::SmallVector<Tensor> gatherRows(llvm::ArrayRef<Tensor> members, const Tensor &choices, int64_t experts);
/// Returns the sums of the rows of each member's tokens on the members with the experts of their choice.
llvm::SmallVector<Tensor> scatterRows(llvm::ArrayRef<Tensor> members, const Tensor &choices, int64_t experts);
llvm::SmallVector<Tensor> ownPart(llvm::ArrayRef<Tensor> members, int64_t dim);

} // namespace windlass::interpreter

#endif
