// The operators that expert parallelism splits: experts among the ranks, and the data around them.
#ifndef WINDLASS_LIB_DIALECT_PLAN_TRANSFORMS_EXPERTPARALLEL_H
#define WINDLASS_LIB_DIALECT_PLAN_TRANSFORMS_EXPERTPARALLEL_H

#include "windlass/Dialect/Plan/Transforms/Propagation.h"

#include "llvm/Support/Error.h"

namespace windlass::plan {

/// A factor of a layer of experts, by name, and how it is split.
using NamedSplit = std::pair<llvm::StringRef, FactorSplit>;

/// Splits each layer of experts by those of `splits` that it takes, in the forward and the backward pass. Pinned
/// operators stay as they are.
void splitExperts(mlir::func::FuncOp function, llvm::ArrayRef<NamedSplit> splits, MeshAttr mesh, const Pins &pins,
                  llvm::DenseMap<mlir::Operation *, Splits> &found);

/// Returns the layers of experts, split by experts over `axes`, and the operators that read inputs, split by the batch:
/// between layers of experts each rank works on its part of the batch. (Lepikhin et al.: GShard, arXiv:2006.16668,
/// section 3.)
llvm::DenseMap<mlir::Operation *, Splits>
findExpertParallel(mlir::func::FuncOp function, llvm::ArrayRef<mlir::StringAttr> axes, MeshAttr mesh, const Pins &pins);

/// Fails where no layer of experts is found in `module`, or where the axes of the model cannot share each layer's
/// experts and each rank's part of the batch evenly.
llvm::Error checkExpertParallel(mlir::ModuleOp module, MeshAttr mesh);

} // namespace windlass::plan

#endif
