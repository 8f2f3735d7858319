//===- RecognizeNorms.cpp - layer norm and RMS norm from primitives -------===//

#include "Match.h"

#include "windlass/Conversion/OnnxToTrain/OnnxToTrain.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"
#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace windlass;

namespace windlass {
#define GEN_PASS_DEF_TRAINRECOGNIZENORMS
#include "windlass/Conversion/OnnxToTrain/Passes.h.inc"
} // namespace windlass

namespace {

/// Looks through reshapes and broadcasts of a row statistic: [rows..] spread along the last dim.
Value stripSpread(Value value) {
  while (Operation *op = value.getDefiningOp()) {
    if (!isa<train::BroadcastOp, train::ReshapeOp>(op))
      break;
    value = op->getOperand(0);
  }
  return value;
}

/// Returns the vector along the last dim that the value repeats in all rows.
Value matchVector(Value value) {
  auto rank = static_cast<int64_t>(shapeOf(value).size());
  if (rank == 1)
    return value;
  auto broadcast = value.getDefiningOp<train::BroadcastOp>();
  if (!broadcast || broadcast.getDims() != llvm::ArrayRef<int64_t>{rank - 1})
    return {};
  return broadcast.getInput();
}

/// Returns x of a mean of x over the last dim: sum · 1/n, or sum / n.
Value matchMean(Value value) {
  Product product = collectProduct(stripSpread(value));
  if (product.factors.size() != 1)
    return {};
  auto reduce = stripSpread(product.factors[0]).getDefiningOp<train::ReduceOp>();
  if (!reduce || reduce.getKind() != train::ReductionKind::sum)
    return {};
  llvm::ArrayRef<int64_t> shape = shapeOf(reduce.getInput());
  if (reduce.getDims() != llvm::ArrayRef<int64_t>{static_cast<int64_t>(shape.size()) - 1} ||
      !isNearly(product.coefficient, 1.0 / double(shape.back())))
    return {};
  return reduce.getInput();
}

/// Returns x of x - mean(x).
Value matchCentered(Value value) {
  auto sub = value.getDefiningOp<train::SubOp>();
  return sub && matchMean(sub.getRhs()) == sub.getLhs() ? sub.getLhs() : Value();
}

/// Returns x of mean(x²) + eps per row.
Value matchMeanSquare(Value value, double &epsilon) {
  auto add = stripSpread(value).getDefiningOp<train::AddOp>();
  if (!add)
    return {};
  for (auto [a, b] : {std::pair(add.getLhs(), add.getRhs()), std::pair(add.getRhs(), add.getLhs())}) {
    std::optional<double> constant = getSplatValue(b);
    Value square = constant ? matchMean(a) : Value();
    auto mul = square ? square.getDefiningOp<train::MulOp>() : train::MulOp();
    // A negative epsilon or NaN is no normalization.
    if (!mul || mul.getLhs() != mul.getRhs() || !(*constant >= 0))
      continue;
    epsilon = *constant;
    return mul.getLhs();
  }
  return {};
}

/// Returns x of sqrt(mean(x²) + eps).
Value matchRoot(Value value, double &epsilon) {
  Value root = stripSpread(value);
  if (auto sqrt = root.getDefiningOp<train::SqrtOp>())
    return matchMeanSquare(sqrt.getInput(), epsilon);
  auto pow = root.getDefiningOp<train::PowOp>();
  return pow && getSplatValue(pow.getRhs()) == 0.5 ? matchMeanSquare(pow.getLhs(), epsilon) : Value();
}

/// Returns x of 1 / sqrt(mean(x²) + eps), broadcast over rows.
Value matchInverseRoot(Value value, double &epsilon) {
  Operation *op = stripSpread(value).getDefiningOp();
  if (auto reciprocal = dyn_cast_or_null<train::ReciprocalOp>(op))
    return matchRoot(reciprocal.getInput(), epsilon);
  if (auto rsqrt = dyn_cast_or_null<train::RsqrtOp>(op))
    return matchMeanSquare(rsqrt.getInput(), epsilon);
  if (auto div = dyn_cast_or_null<train::DivOp>(op))
    return getSplatValue(div.getLhs()) == 1.0 ? matchRoot(div.getRhs(), epsilon) : Value();
  auto pow = dyn_cast_or_null<train::PowOp>(op);
  return pow && getSplatValue(pow.getRhs()) == -0.5 ? matchMeanSquare(pow.getLhs(), epsilon) : Value();
}

/// A row divided by the root of its mean square.
struct Normalized {
  Value input;
  double epsilon = 0;
};

/// Collects the factors of a product and its divisors, however they are nested, but not those of `whole`.
void collectQuotient(Value value, Value whole, llvm::SmallVectorImpl<Value> &factors,
                     llvm::SmallVectorImpl<Value> &divisors, int depth = 0) {
  auto mul = value.getDefiningOp<train::MulOp>();
  auto div = value.getDefiningOp<train::DivOp>();
  if (value == whole || depth == 8 || (!mul && !div)) {
    factors.push_back(value);
  } else if (mul) {
    collectQuotient(mul.getLhs(), whole, factors, divisors, depth + 1);
    collectQuotient(mul.getRhs(), whole, factors, divisors, depth + 1);
  } else {
    collectQuotient(div.getLhs(), whole, factors, divisors, depth + 1);
    divisors.push_back(div.getRhs());
  }
}

/// Matches x / root · scale, where x is the operand of the root, in any order and with the root's reciprocal as well.
Normalized matchScaled(Value value, Value &scale) {
  llvm::SmallVector<Value> candidates, divisors;
  collectQuotient(value, Value(), candidates, divisors);
  size_t products = candidates.size();
  candidates.append(divisors);
  for (auto [i, root] : llvm::enumerate(candidates)) {
    bool divides = i >= products;
    Normalized result;
    result.input = divides ? matchRoot(root, result.epsilon) : matchInverseRoot(root, result.epsilon);
    if (!result.input || shapeOf(result.input) != shapeOf(value))
      continue;
    // The factors without x and the root must be the scale.
    llvm::SmallVector<Value> factors, under;
    collectQuotient(value, result.input, factors, under);
    Value *x = llvm::find(factors, result.input);
    if (x == factors.end())
      continue;
    factors.erase(x);
    llvm::SmallVector<Value> &of = divides ? under : factors;
    Value *at = llvm::find(of, root);
    if (at == of.end())
      continue;
    of.erase(at);
    scale = factors.size() == 1 && under.empty() ? matchVector(factors.front()) : Value();
    if (scale && shapeOf(scale).back() == shapeOf(value).back())
      return result;
  }
  return {};
}

RankedTensorType getRowType(Value value) {
  return RankedTensorType::get(shapeOf(value).drop_back(), cast<RankedTensorType>(value.getType()).getElementType());
}

/// Recognises (x - mean) rstd · scale + bias. The product alone is not enough, because its root is found again below
/// the sum.
struct RecognizeLayerNorm : OpRewritePattern<train::AddOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(train::AddOp op, PatternRewriter &rewriter) const override {
    for (auto [product, shift] : {std::pair(op.getLhs(), op.getRhs()), std::pair(op.getRhs(), op.getLhs())}) {
      Value bias = matchVector(shift), scale;
      Normalized rows = bias ? matchScaled(product, scale) : Normalized();
      Value x = rows.input ? matchCentered(rows.input) : Value();
      if (!x)
        continue;
      auto norm = train::LayerNormOp::create(rewriter, op.getLoc(), op.getType(), getRowType(x), getRowType(x), x,
                                             scale, bias, llvm::APFloat(rows.epsilon));
      rewriter.replaceOp(op, norm.getResult());
      return success();
    }
    return failure();
  }
};

/// Recognises x rstd · scale; with a centered x it is a layer norm without a bias.
template <class Root> struct RecognizeScaled : OpRewritePattern<Root> {
  using OpRewritePattern<Root>::OpRewritePattern;
  LogicalResult matchAndRewrite(Root op, PatternRewriter &rewriter) const override {
    Value scale;
    Normalized rows = matchScaled(op.getResult(), scale);
    if (!rows.input)
      return failure();
    llvm::APFloat epsilon(rows.epsilon);
    Value result;
    if (Value x = matchCentered(rows.input))
      result = train::LayerNormOp::create(rewriter, op.getLoc(), op.getType(), getRowType(x), getRowType(x), x, scale,
                                          Value(), epsilon)
                   .getResult();
    else
      result = train::RmsNormOp::create(rewriter, op.getLoc(), op.getType(), getRowType(rows.input), rows.input, scale,
                                        epsilon)
                   .getResult();
    rewriter.replaceOp(op, result);
    return success();
  }
};

struct TrainRecognizeNormsPass : windlass::impl::TrainRecognizeNormsBase<TrainRecognizeNormsPass> {
  void runOnOperation() override {
    // Norms with a bias come first: the product below the sum would be recognised without it.
    RewritePatternSet withBias(&getContext()), scaled(&getContext());
    withBias.add<RecognizeLayerNorm>(&getContext());
    scaled.add<RecognizeScaled<train::MulOp>, RecognizeScaled<train::DivOp>>(&getContext());
    if (failed(applyPatternsGreedily(getOperation(), std::move(withBias))) ||
        failed(applyPatternsGreedily(getOperation(), std::move(scaled))))
      signalPassFailure();
  }
};

} // namespace
