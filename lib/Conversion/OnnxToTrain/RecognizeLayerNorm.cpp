//===- RecognizeLayerNorm.cpp - layer normalisation from primitives -------===//

#include "Match.h"

#include "windlass/Conversion/OnnxToTrain/OnnxToTrain.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"
#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace windlass;

namespace windlass {
#define GEN_PASS_DEF_TRAINRECOGNIZELAYERNORM
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

/// A vector along the last dim, spread over all rows.
Value matchVector(Value value) {
  auto rank = static_cast<int64_t>(shapeOf(value).size());
  if (rank == 1)
    return value;
  auto broadcast = value.getDefiningOp<train::BroadcastOp>();
  if (!broadcast || broadcast.getDims() != llvm::ArrayRef<int64_t>{rank - 1})
    return {};
  return broadcast.getInput();
}

/// What a mean over the last dim is taken of: sum · 1/n, or sum / n.
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

/// x - mean(x): x.
Value matchCentered(Value value) {
  auto sub = value.getDefiningOp<train::SubOp>();
  return sub && matchMean(sub.getRhs()) == sub.getLhs() ? sub.getLhs() : Value();
}

/// sqrt(mean((x - mean(x))²) + eps), spread over rows.
bool isDeviation(Value value, Value centered, double &epsilon) {
  auto root = stripSpread(value).getDefiningOp<train::SqrtOp>();
  auto add = root ? stripSpread(root.getInput()).getDefiningOp<train::AddOp>() : train::AddOp();
  if (!add)
    return false;
  for (auto [a, b] : {std::pair(add.getLhs(), add.getRhs()), std::pair(add.getRhs(), add.getLhs())}) {
    std::optional<double> constant = getSplatValue(b);
    Value square = constant ? matchMean(a) : Value();
    auto mul = square ? square.getDefiningOp<train::MulOp>() : train::MulOp();
    if (!mul || mul.getLhs() != centered || mul.getRhs() != centered)
      continue;
    epsilon = *constant;
    return true;
  }
  return false;
}

/// (x - mean) / deviation, or times its reciprocal: x.
Value matchNormalized(Value value, double &epsilon) {
  if (auto div = value.getDefiningOp<train::DivOp>()) {
    Value x = matchCentered(div.getLhs());
    return x && isDeviation(div.getRhs(), div.getLhs(), epsilon) ? x : Value();
  }
  auto mul = value.getDefiningOp<train::MulOp>();
  if (!mul)
    return {};
  for (auto [a, b] : {std::pair(mul.getLhs(), mul.getRhs()), std::pair(mul.getRhs(), mul.getLhs())}) {
    auto reciprocal = stripSpread(b).getDefiningOp<train::ReciprocalOp>();
    Value x = reciprocal ? matchCentered(a) : Value();
    if (x && isDeviation(reciprocal.getInput(), a, epsilon))
      return x;
  }
  return {};
}

/// normalized · scale + bias; the scale alone is not enough, for its root is found again below the sum.
struct RecognizeLayerNorm : OpRewritePattern<train::AddOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(train::AddOp op, PatternRewriter &rewriter) const override {
    for (auto [product, shift] : {std::pair(op.getLhs(), op.getRhs()), std::pair(op.getRhs(), op.getLhs())}) {
      Value bias = matchVector(shift);
      auto mul = bias ? product.getDefiningOp<train::MulOp>() : train::MulOp();
      if (!mul)
        continue;
      for (auto [rows, factor] : {std::pair(mul.getLhs(), mul.getRhs()), std::pair(mul.getRhs(), mul.getLhs())}) {
        double epsilon = 0;
        Value scale = matchVector(factor), x = scale ? matchNormalized(rows, epsilon) : Value();
        if (!x)
          continue;
        auto statistics =
            RankedTensorType::get(shapeOf(x).drop_back(), cast<RankedTensorType>(x.getType()).getElementType());
        auto norm = train::LayerNormOp::create(rewriter, op.getLoc(), op.getType(), statistics, statistics, x, scale,
                                               bias, llvm::APFloat(epsilon));
        rewriter.replaceOp(op, norm.getResult());
        return success();
      }
    }
    return failure();
  }
};

struct TrainRecognizeLayerNormPass : windlass::impl::TrainRecognizeLayerNormBase<TrainRecognizeLayerNormPass> {
  void runOnOperation() override {
    RewritePatternSet patterns(&getContext());
    patterns.add<RecognizeLayerNorm>(&getContext());
    if (failed(applyPatternsGreedily(getOperation(), std::move(patterns))))
      signalPassFailure();
  }
};

} // namespace
