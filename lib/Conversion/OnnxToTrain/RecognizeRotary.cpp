//===- RecognizeRotary.cpp - rotary position embedding --------------------===//

#include "Match.h"

#include "windlass/Conversion/OnnxToTrain/OnnxToTrain.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"
#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace windlass;

namespace windlass {
#define GEN_PASS_DEF_TRAINRECOGNIZEROTARY
#include "windlass/Conversion/OnnxToTrain/Passes.h.inc"
} // namespace windlass

namespace {

/// Returns x of -x, as a negation or a product with -1.
Value matchNegated(Value value) {
  if (auto neg = value.getDefiningOp<train::NegOp>())
    return neg.getInput();
  Product product = collectProduct(value);
  return product.factors.size() == 1 && product.coefficient == -1 ? product.factors[0] : Value();
}

/// Returns x of concat(-x₂, x₁), the halves of a row.
Value matchTurned(Value value) {
  auto concat = value.getDefiningOp<train::ConcatOp>();
  llvm::ArrayRef<int64_t> shape = shapeOf(value);
  if (!concat || concat.getInputs().size() != 2 || shape.empty() || concat.getAxis() + 1 != shape.size())
    return {};
  Value second = matchNegated(concat.getInputs()[0]), first = concat.getInputs()[1];
  if (!second || shapeOf(first) != shapeOf(second))
    return {};
  Value x = matchHalf(first, false);
  return x && shapeOf(x) == shape && matchHalf(second, true) == x ? x : Value();
}

/// Returns the table [tokens, depth], perhaps with dims of size 1 in front, that the value broadcasts over the dims
/// before.
Value matchTable(Value value) {
  auto rank = static_cast<int64_t>(shapeOf(value).size());
  if (rank == 2)
    return value;
  auto broadcast = value.getDefiningOp<train::BroadcastOp>();
  if (!broadcast)
    return {};
  llvm::ArrayRef<int64_t> dims = broadcast.getDims(), shape = shapeOf(broadcast.getInput());
  bool fits = dims.size() >= 2 && dims.take_back(2) == llvm::ArrayRef<int64_t>{rank - 2, rank - 1} &&
              llvm::all_of(shape.drop_back(2), [](int64_t size) { return size == 1; });
  return fits ? broadcast.getInput() : Value();
}

/// Returns the table without dims of size 1 in front.
Value dropLeadingDims(Value table, Location location, PatternRewriter &rewriter) {
  auto type = cast<RankedTensorType>(table.getType());
  if (type.getRank() == 2)
    return table;
  auto plane = RankedTensorType::get(type.getShape().take_back(2), type.getElementType());
  return train::ReshapeOp::create(rewriter, location, plane, table).getResult();
}

} // namespace

Rotary windlass::matchRotary(train::AddOp op) {
  auto orders = [](Value a, Value b) { return llvm::SmallVector<std::pair<Value, Value>, 2>{{a, b}, {b, a}}; };
  auto type = dyn_cast<RankedTensorType>(op.getType());
  if (!type || type.getRank() < 2)
    return {};
  for (auto [plain, turned] : orders(op.getLhs(), op.getRhs())) {
    auto sineMul = turned.getDefiningOp<train::MulOp>(), cosineMul = plain.getDefiningOp<train::MulOp>();
    if (!sineMul || !cosineMul)
      continue;
    for (auto [rows, sineSpread] : orders(sineMul.getLhs(), sineMul.getRhs())) {
      Value x = matchTurned(rows), sine = x ? matchTable(sineSpread) : Value();
      if (!sine)
        continue;
      for (auto [same, cosineSpread] : orders(cosineMul.getLhs(), cosineMul.getRhs()))
        if (Value cosine = same == x ? matchTable(cosineSpread) : Value())
          return {x, cosine, sine};
    }
  }
  return {};
}

namespace {

struct RecognizeRotary : OpRewritePattern<train::AddOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(train::AddOp op, PatternRewriter &rewriter) const override {
    Rotary found = matchRotary(op);
    // The op gives its tables no gradient.
    if (!found.input || dependsOnTrainable(found.cosine) || dependsOnTrainable(found.sine))
      return failure();
    Value cosine = dropLeadingDims(found.cosine, op.getLoc(), rewriter);
    Value sine = dropLeadingDims(found.sine, op.getLoc(), rewriter);
    rewriter.replaceOpWithNewOp<train::RotaryOp>(op, op.getType(), found.input, cosine, sine, false);
    return success();
  }
};

struct TrainRecognizeRotaryPass : windlass::impl::TrainRecognizeRotaryBase<TrainRecognizeRotaryPass> {
  void runOnOperation() override {
    RewritePatternSet patterns(&getContext());
    patterns.add<RecognizeRotary>(&getContext());
    if (failed(applyPatternsGreedily(getOperation(), std::move(patterns))))
      signalPassFailure();
  }
};

} // namespace
