//===- SimplifyLayout.cpp - one transpose instead of three ops ------------===//

#include "Match.h"

#include "windlass/Conversion/OnnxToTrain/OnnxToTrain.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"
#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace windlass;

namespace windlass {
#define GEN_PASS_DEF_TRAINSIMPLIFYLAYOUT
#include "windlass/Conversion/OnnxToTrain/Passes.h.inc"
} // namespace windlass

namespace {

/// Rewrites [a, b, s, d] -> [a * b, s, d] -> [a * b, d, s] -> [a, b, d, s], as exporters transpose keys, to one
/// transpose.
struct TransposeOfMerged : OpRewritePattern<train::ReshapeOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(train::ReshapeOp op, PatternRewriter &rewriter) const override {
    auto transpose = op.getInput().getDefiningOp<train::TransposeOp>();
    auto merge = transpose ? transpose.getInput().getDefiningOp<train::ReshapeOp>() : train::ReshapeOp();
    if (!merge)
      return failure();
    llvm::ArrayRef<int64_t> merged = getMergedDims(merge), permutation = transpose.getPermutation();
    if (merged.empty() || permutation.front() != 0)
      return failure();
    llvm::SmallVector<int64_t> shape(merged), order = llvm::to_vector(llvm::seq<int64_t>(0, merged.size()));
    for (int64_t dim : permutation.drop_front()) {
      order.push_back(dim + static_cast<int64_t>(merged.size()) - 1);
      shape.push_back(shapeOf(merge.getResult())[dim]);
    }
    if (shapeOf(op.getResult()) != llvm::ArrayRef<int64_t>(shape))
      return failure();
    rewriter.replaceOpWithNewOp<train::TransposeOp>(op, op.getType(), merge.getInput(), order);
    return success();
  }
};

struct TrainSimplifyLayoutPass : windlass::impl::TrainSimplifyLayoutBase<TrainSimplifyLayoutPass> {
  void runOnOperation() override {
    RewritePatternSet patterns(&getContext());
    populateLayoutPatterns(patterns);
    patterns.add<TransposeOfMerged>(&getContext());
    if (failed(applyPatternsGreedily(getOperation(), std::move(patterns))))
      signalPassFailure();
  }
};

} // namespace
