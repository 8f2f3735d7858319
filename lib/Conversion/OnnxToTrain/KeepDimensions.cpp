//===- KeepDimensions.cpp - work on the dims that a flatten merged --------===//

#include "Match.h"

#include "windlass/Conversion/OnnxToTrain/OnnxToTrain.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"
#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace windlass;

namespace windlass {
#define GEN_PASS_DEF_TRAINKEEPDIMENSIONS
#include "windlass/Conversion/OnnxToTrain/Passes.h.inc"
} // namespace windlass

namespace {

/// Returns the dims whose product is the first dim of a reshape's result, where there are at least two; the other dims
/// do not matter.
llvm::ArrayRef<int64_t> getLeadingDims(train::ReshapeOp op) {
  llvm::ArrayRef<int64_t> from = shapeOf(op.getInput()), to = shapeOf(op.getResult());
  if (to.empty())
    return {};
  int64_t product = 1;
  for (size_t i = 0; i < from.size(); ++i) {
    product *= from[i];
    if (product == to[0])
      return i >= 1 ? from.take_front(i + 1) : llvm::ArrayRef<int64_t>();
    if (product > to[0])
      break;
  }
  return {};
}

/// Returns the reshape that makes the operand if it merges leading dims; null otherwise.
train::ReshapeOp getFlatten(Value value) {
  auto reshape = value.getDefiningOp<train::ReshapeOp>();
  return reshape && !getLeadingDims(reshape).empty() ? reshape : train::ReshapeOp();
}

RankedTensorType unflatten(Type type, llvm::ArrayRef<int64_t> merged);

/// Returns the flattened value with its leading dims apart.
Value getApart(train::ReshapeOp flatten, PatternRewriter &rewriter) {
  RankedTensorType type = unflatten(flatten.getType(), getLeadingDims(flatten));
  if (flatten.getInput().getType() == type)
    return flatten.getInput();
  return train::ReshapeOp::create(rewriter, flatten.getLoc(), type, flatten.getInput()).getResult();
}

/// Returns `type` with its first dim replaced by those that a flatten merged.
RankedTensorType unflatten(Type type, llvm::ArrayRef<int64_t> merged) {
  auto tensor = cast<RankedTensorType>(type);
  llvm::SmallVector<int64_t> shape(merged);
  llvm::append_range(shape, tensor.getShape().drop_front());
  return RankedTensorType::get(shape, tensor.getElementType());
}

/// Rewrites matmul(flatten(x), w) to flatten(matmul(x, w)): the merged dims stay free dims of the product.
struct MatmulOfFlatten : OpRewritePattern<train::MatmulOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(train::MatmulOp op, PatternRewriter &rewriter) const override {
    train::ReshapeOp flatten = getFlatten(op.getLhs());
    if (!flatten || !op.getLhsBatch().empty() || llvm::is_contained(op.getLhsContract(), 0))
      return failure();
    llvm::ArrayRef<int64_t> merged = getLeadingDims(flatten);
    auto extra = static_cast<int64_t>(merged.size()) - 1;
    llvm::SmallVector<int64_t> contract;
    for (int64_t dim : op.getLhsContract())
      contract.push_back(dim + extra);
    auto product = train::MatmulOp::create(rewriter, op.getLoc(), unflatten(op.getType(), merged),
                                           getApart(flatten, rewriter), op.getRhs(), llvm::ArrayRef<int64_t>{},
                                           op.getRhsBatch(), contract, op.getRhsContract());
    rewriter.replaceOpWithNewOp<train::ReshapeOp>(op, op.getType(), product.getResult());
    return success();
  }
};

/// Rewrites an element-wise op over flattened values, splats and values that are equal in every row.
struct ElementwiseOfFlatten : OpInterfaceRewritePattern<train::ScalarOpInterface> {
  using OpInterfaceRewritePattern::OpInterfaceRewritePattern;
  LogicalResult matchAndRewrite(train::ScalarOpInterface op, PatternRewriter &rewriter) const override {
    if (op->getNumResults() != 1 || !isa<RankedTensorType>(op->getResult(0).getType()))
      return failure();
    llvm::ArrayRef<int64_t> merged;
    for (Value operand : op->getOperands())
      if (train::ReshapeOp flatten = getFlatten(operand)) {
        if (!merged.empty() && merged != getLeadingDims(flatten))
          return failure();
        merged = getLeadingDims(flatten);
      }
    if (merged.empty())
      return failure();
    auto extra = static_cast<int64_t>(merged.size()) - 1;
    for (Value operand : op->getOperands()) {
      if (getFlatten(operand))
        continue;
      auto broadcast = operand.getDefiningOp<train::BroadcastOp>();
      bool isSameInRows = broadcast && !llvm::is_contained(broadcast.getDims(), 0);
      auto constant = operand.getDefiningOp<train::ConstantOp>();
      if (!isSameInRows && !(constant && getSplatValue(operand)))
        return failure();
    }
    llvm::SmallVector<Value> operands;
    for (Value operand : op->getOperands()) {
      RankedTensorType type = unflatten(operand.getType(), merged);
      if (train::ReshapeOp flatten = getFlatten(operand)) {
        operands.push_back(getApart(flatten, rewriter));
      } else if (auto constant = operand.getDefiningOp<train::ConstantOp>()) {
        auto splat = cast<DenseElementsAttr>(constant.getValue()).resizeSplat(type);
        operands.push_back(train::ConstantOp::create(rewriter, constant.getLoc(), type, splat).getResult());
      } else {
        auto broadcast = cast<train::BroadcastOp>(operand.getDefiningOp());
        llvm::SmallVector<int64_t> dims;
        for (int64_t dim : broadcast.getDims())
          dims.push_back(dim + extra);
        operands.push_back(
            train::BroadcastOp::create(rewriter, broadcast.getLoc(), type, broadcast.getInput(), dims).getResult());
      }
    }
    OperationState state(op->getLoc(), op->getName(), operands, unflatten(op->getResult(0).getType(), merged),
                         op->getAttrs());
    Operation *wide = rewriter.create(state);
    rewriter.replaceOpWithNewOp<train::ReshapeOp>(op, op->getResult(0).getType(), wide->getResult(0));
    return success();
  }
};

struct CrossEntropyOfFlatten : OpRewritePattern<train::SoftmaxCrossEntropyOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(train::SoftmaxCrossEntropyOp op, PatternRewriter &rewriter) const override {
    train::ReshapeOp flatten = getFlatten(op.getLogits());
    if (!flatten)
      return failure();
    llvm::ArrayRef<int64_t> merged = getLeadingDims(flatten);
    auto labels =
        train::ReshapeOp::create(rewriter, op.getLoc(), unflatten(op.getLabels().getType(), merged), op.getLabels());
    auto wide =
        train::SoftmaxCrossEntropyOp::create(rewriter, op.getLoc(), op.getSum().getType(), op.getCount().getType(),
                                             unflatten(op.getLogSum().getType(), merged), getApart(flatten, rewriter),
                                             labels.getResult(), op.getIgnoreIndex());
    auto logSum = train::ReshapeOp::create(rewriter, op.getLoc(), op.getLogSum().getType(), wide.getLogSum());
    rewriter.replaceOp(op, {wide.getSum(), wide.getCount(), logSum.getResult()});
    return success();
  }
};

/// Rewrites a layer norm over rows of the last dim, which a flatten of rank 2 or more leaves alone.
struct LayerNormOfFlatten : OpRewritePattern<train::LayerNormOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(train::LayerNormOp op, PatternRewriter &rewriter) const override {
    train::ReshapeOp flatten = getFlatten(op.getInput());
    if (!flatten || shapeOf(op.getInput()).size() < 2)
      return failure();
    llvm::ArrayRef<int64_t> merged = getLeadingDims(flatten);
    auto wide =
        train::LayerNormOp::create(rewriter, op.getLoc(), unflatten(op.getResult().getType(), merged),
                                   unflatten(op.getMean().getType(), merged), unflatten(op.getRstd().getType(), merged),
                                   getApart(flatten, rewriter), op.getScale(), op.getBias(), op.getEpsilon());
    llvm::SmallVector<Value> results;
    for (auto [now, before] : llvm::zip_equal(wide->getResults(), op->getResults()))
      results.push_back(train::ReshapeOp::create(rewriter, op.getLoc(), before.getType(), now).getResult());
    rewriter.replaceOp(op, results);
    return success();
  }
};

struct RmsNormOfFlatten : OpRewritePattern<train::RmsNormOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(train::RmsNormOp op, PatternRewriter &rewriter) const override {
    train::ReshapeOp flatten = getFlatten(op.getInput());
    if (!flatten || shapeOf(op.getInput()).size() < 2)
      return failure();
    llvm::ArrayRef<int64_t> merged = getLeadingDims(flatten);
    auto wide = train::RmsNormOp::create(rewriter, op.getLoc(), unflatten(op.getResult().getType(), merged),
                                         unflatten(op.getRstd().getType(), merged), getApart(flatten, rewriter),
                                         op.getScale(), op.getEpsilon());
    llvm::SmallVector<Value> results;
    for (auto [now, before] : llvm::zip_equal(wide->getResults(), op->getResults()))
      results.push_back(train::ReshapeOp::create(rewriter, op.getLoc(), before.getType(), now).getResult());
    rewriter.replaceOp(op, results);
    return success();
  }
};

/// Rewrites a matmul of a transposed operand to one that contracts other dims, as long as its free dims keep their
/// order.
struct MatmulOfTranspose : OpRewritePattern<train::MatmulOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(train::MatmulOp op, PatternRewriter &rewriter) const override {
    auto fold = [](Value operand, llvm::ArrayRef<int64_t> freeDims, llvm::SmallVector<int64_t> &batch,
                   llvm::SmallVector<int64_t> &contract) -> Value {
      auto transpose = operand.getDefiningOp<train::TransposeOp>();
      if (!transpose)
        return {};
      llvm::ArrayRef<int64_t> permutation = transpose.getPermutation();
      for (size_t i = 1; i < freeDims.size(); ++i)
        if (permutation[freeDims[i - 1]] > permutation[freeDims[i]])
          return {};
      for (int64_t &dim : batch)
        dim = permutation[dim];
      for (int64_t &dim : contract)
        dim = permutation[dim];
      return transpose.getInput();
    };
    llvm::SmallVector<int64_t> lhsBatch(op.getLhsBatch()), rhsBatch(op.getRhsBatch()), lhsContract(op.getLhsContract()),
        rhsContract(op.getRhsContract());
    Value lhs = fold(op.getLhs(), op.getLhsFreeDims(), lhsBatch, lhsContract);
    Value rhs = fold(op.getRhs(), op.getRhsFreeDims(), rhsBatch, rhsContract);
    if (!lhs && !rhs)
      return failure();
    rewriter.replaceOpWithNewOp<train::MatmulOp>(op, op.getType(), lhs ? lhs : op.getLhs(), rhs ? rhs : op.getRhs(),
                                                 lhsBatch, rhsBatch, lhsContract, rhsContract);
    return success();
  }
};

struct TrainKeepDimensionsPass : windlass::impl::TrainKeepDimensionsBase<TrainKeepDimensionsPass> {
  void runOnOperation() override {
    RewritePatternSet patterns(&getContext());
    populateLayoutPatterns(patterns);
    patterns.add<MatmulOfFlatten, ElementwiseOfFlatten, CrossEntropyOfFlatten, LayerNormOfFlatten, RmsNormOfFlatten,
                 MatmulOfTranspose>(&getContext());
    if (failed(applyPatternsGreedily(getOperation(), std::move(patterns))))
      signalPassFailure();
  }
};

} // namespace
