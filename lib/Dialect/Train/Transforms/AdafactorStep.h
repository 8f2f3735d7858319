// Adafactor (Shazeer and Stern, arXiv:1804.04235), as PyTorch's torch.optim.Adafactor makes it.
#ifndef WINDLASS_DIALECT_TRAIN_TRANSFORMS_ADAFACTORSTEP_H
#define WINDLASS_DIALECT_TRAIN_TRANSFORMS_ADAFACTORSTEP_H

#include "StepBuilder.h"

namespace windlass::train {

/// A tensor that Adafactor keeps for a weight.
struct AdafactorMoment {
  llvm::StringRef name;
  mlir::RankedTensorType type;
};

/// Returns what is kept for a weight of that type. A weight of two or more dims keeps the mean of the gradient's
/// squares over its last dim, `row_var`, and over the dim before that, `col_var`; another weight keeps all squares,
/// `variance`.
llvm::SmallVector<AdafactorMoment, 2> getAdafactorMoments(mlir::RankedTensorType weight);

/// Adds the operators of one weight's step.
class AdafactorStep : StepBuilder {
public:
  using StepBuilder::StepBuilder;

  /// Returns the gradient times `scale`; zeros where `isFinite`, which may be null, is false.
  mlir::Value scaleGradient(mlir::Value gradient, mlir::Value scale, mlir::Value isFinite);

  /// Moves the moments by `rate` towards the squares of the gradient, and returns the gradient over the root of the
  /// squares that they stand for.
  mlir::Value getDirection(mlir::Value gradient, llvm::MutableArrayRef<mlir::Value> moments, mlir::Value rate);

  /// Returns the rate at which the weight descends, min(learningRate, inverseRoot) max(leastScale, rms(weight)) /
  /// max(1, rms(direction)), where rms is the root mean square. `inverseRoot` is one over the root of the step's
  /// number.
  mlir::Value getRate(mlir::Value weight, mlir::Value direction, mlir::Value learningRate, mlir::Value inverseRoot,
                      mlir::Value leastScale);

private:
  /// Returns the larger of a tensor and a number.
  mlir::Value atLeast(const llvm::Twine &name, mlir::Value value, double least);
  /// Returns the mean over one dim, which vanishes.
  mlir::Value average(const llvm::Twine &name, mlir::Value value, int64_t dim);
  /// Returns the root of the mean of all squares.
  mlir::Value getRootMeanSquare(const llvm::Twine &name, mlir::Value value);
};

} // namespace windlass::train

#endif
