// Muon (K. Jordan et al., 2024, https://kellerjordan.github.io/posts/muon), as PyTorch's torch.optim.Muon makes it.
#ifndef WINDLASS_DIALECT_TRAIN_TRANSFORMS_MUONSTEP_H
#define WINDLASS_DIALECT_TRAIN_TRANSFORMS_MUONSTEP_H

#include "StepBuilder.h"

#include "llvm/ADT/DenseSet.h"

namespace windlass::train {

/// Returns the trainable matrices that products read, without those whose rows stand for words: tables of embeddings,
/// and what logits are products with.
llvm::DenseSet<mlir::Operation *> findMuonMatrices(mlir::ModuleOp module);

/// Returns 0.2 sqrt(max(rows, columns)), by which an orthogonal matrix has steps as large as those of AdamW
/// (Liu et al., arXiv:2502.16982), so that one learning rate serves both.
double getMuonScale(mlir::RankedTensorType matrix);

/// Adds the operators that make a matrix orthogonal.
class MuonStep : StepBuilder {
public:
  using StepBuilder::StepBuilder;

  /// Returns about U V^T where the matrix is U S V^T, by five steps of a Newton-Schulz iteration.
  mlir::Value orthogonalize(mlir::Value matrix);

private:
  /// Returns `factor` times the matrix.
  mlir::Value scale(const llvm::Twine &name, mlir::Value matrix, double factor);
  /// Returns the product of two matrices over one dim of each.
  mlir::Value multiply(const llvm::Twine &name, mlir::Value lhs, mlir::Value rhs, int64_t lhsDim, int64_t rhsDim);
};

} // namespace windlass::train

#endif
