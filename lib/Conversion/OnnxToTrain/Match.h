//===- Match.h - what the recognising passes look for -----------*- C++ -*-===//

#ifndef WINDLASS_LIB_CONVERSION_ONNXTOTRAIN_MATCH_H
#define WINDLASS_LIB_CONVERSION_ONNXTOTRAIN_MATCH_H

#include "windlass/Dialect/Train/IR/TrainOps.h"

#include "mlir/IR/PatternMatch.h"
#include "llvm/ADT/SmallVector.h"

#include <optional>

namespace windlass {

/// Returns the value of a constant whose elements are all equal.
std::optional<double> getSplatValue(mlir::Value value);

/// A product as a coefficient and its factors: products, quotients by constants and negations are looked through. One
/// factor may occur twice.
struct Product {
  double coefficient = 1;
  llvm::SmallVector<mlir::Value> factors;
};
Product collectProduct(mlir::Value value);

/// Whether `a` and `b` differ by no more than a rounding of f32.
bool isNearly(double a, double b);

/// Returns the dims that a reshape merges at the front: `[a, b, rest..] -> [a * b, rest..]` with at least two; empty
/// otherwise.
llvm::ArrayRef<int64_t> getMergedDims(train::ReshapeOp op);

inline llvm::ArrayRef<int64_t> shapeOf(mlir::Value value) {
  return mlir::cast<mlir::RankedTensorType>(value.getType()).getShape();
}

/// Returns the value of whose last dim a slice or a split takes the first half, or with `isSecond` the second one; null
/// where `value` is something else.
mlir::Value matchHalf(mlir::Value value, bool isSecond);

/// Whether a gradient of the value would reach a parameter that trains.
bool dependsOnTrainable(mlir::Value value);

/// The sum x · cosine + turned(x) · sine, with all operands in any order; the tables [tokens, depth] may have dims of
/// size 1 in front. `input` is null where `op` is something else.
struct Rotary {
  mlir::Value input, cosine, sine;
};
Rotary matchRotary(train::AddOp op);

/// Adds rewrites of reshapes and transposes that several passes need: a reshape of a reshape becomes one, a transpose
/// of a transpose too.
void populateLayoutPatterns(mlir::RewritePatternSet &patterns);

} // namespace windlass

#endif // WINDLASS_LIB_CONVERSION_ONNXTOTRAIN_MATCH_H
