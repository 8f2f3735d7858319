//===- RecognizeAttention.cpp - scaled dot-product attention --------------===//

#include "Match.h"

#include "windlass/Conversion/OnnxToTrain/OnnxToTrain.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"
#include "llvm/ADT/STLExtras.h"

#include <cmath>

using namespace mlir;
using namespace windlass;

namespace windlass {
#define GEN_PASS_DEF_TRAINRECOGNIZEATTENTION
#include "windlass/Conversion/OnnxToTrain/Passes.h.inc"
} // namespace windlass

namespace {

/// The largest number of an additive mask that leaves nothing of a key in f32.
constexpr double kMasked = -1e9;
/// The largest number that absorbs a score: the sum of both is this number, in f64 too.
constexpr double kAbsorbing = -1e30;

/// Whether the op multiplies matrices for each pair of two batch dims: batch and heads.
bool isBatchedByTwo(train::MatmulOp op) {
  return shapeOf(op.getLhs()).size() == 4 && shapeOf(op.getRhs()).size() == 4 && op.getLhsBatch().size() == 2 &&
         op.getLhsContract().size() == 1;
}

/// Returns the dims of an operand as batch, heads, and its two inner dims with the contracted one last or first.
llvm::SmallVector<int64_t> getHeadOrder(llvm::ArrayRef<int64_t> batch, int64_t contracted, bool isLast) {
  int64_t free = 6 - batch[0] - batch[1] - contracted;
  return isLast ? llvm::SmallVector<int64_t>{batch[0], batch[1], free, contracted}
                : llvm::SmallVector<int64_t>{batch[0], batch[1], contracted, free};
}

/// Returns `value` with its dims in the given order.
Value putInOrder(Value value, llvm::ArrayRef<int64_t> order, Location location, PatternRewriter &rewriter) {
  if (llvm::equal(order, llvm::seq<int64_t>(0, 4)))
    return value;
  llvm::SmallVector<int64_t> shape;
  for (int64_t dim : order)
    shape.push_back(shapeOf(value)[dim]);
  auto type = RankedTensorType::get(shape, cast<RankedTensorType>(value.getType()).getElementType());
  return train::TransposeOp::create(rewriter, location, type, value, order).getResult();
}

/// Looks through products and quotients with constants.
Value peelScale(Value value, double &scale) {
  while (Operation *op = value.getDefiningOp()) {
    if (auto mul = dyn_cast<train::MulOp>(op)) {
      if (std::optional<double> splat = getSplatValue(mul.getRhs())) {
        scale *= *splat;
        value = mul.getLhs();
        continue;
      }
      if (std::optional<double> splat = getSplatValue(mul.getLhs())) {
        scale *= *splat;
        value = mul.getRhs();
        continue;
      }
    }
    if (auto div = dyn_cast<train::DivOp>(op))
      if (std::optional<double> splat = getSplatValue(div.getRhs()); splat && *splat != 0) {
        scale /= *splat;
        value = div.getLhs();
        continue;
      }
    break;
  }
  return value;
}

/// Looks through scales and transposes; `order` holds dims of `value` and becomes those of the result.
Value peel(Value value, double &scale, llvm::SmallVector<int64_t> &order) {
  while (true) {
    value = peelScale(value, scale);
    auto transpose = value.getDefiningOp<train::TransposeOp>();
    if (!transpose)
      return value;
    for (int64_t &dim : order)
      dim = transpose.getPermutation()[dim];
    value = transpose.getInput();
  }
}

/// Whether the comparison holds exactly for column <= row + `offset`, or where `isInverted` exactly for the others.
bool isLowerTriangle(Value condition, int64_t offset, bool isInverted = false) {
  auto compare = condition.getDefiningOp<train::CompareOp>();
  if (!compare)
    return false;
  Value columns = compare.getLhs(), rows = compare.getRhs();
  train::Predicate same = isInverted ? train::Predicate::greater : train::Predicate::less_equal;
  train::Predicate turned = isInverted ? train::Predicate::less : train::Predicate::greater_equal;
  if (compare.getPredicate() == turned)
    std::swap(columns, rows);
  else if (compare.getPredicate() != same)
    return false;
  auto column = columns.getDefiningOp<train::IotaOp>(), row = rows.getDefiningOp<train::IotaOp>();
  if (!column || !row || column.getDim() != 1 || row.getDim() != 0 || shapeOf(columns).size() != 2)
    return false;
  return column.getStep().convertToDouble() == 1 && row.getStep().convertToDouble() == 1 &&
         row.getStart().convertToDouble() - column.getStart().convertToDouble() == double(offset);
}

/// Strips a broadcast of a [tokens, keys] value over batch and heads.
Value stripToPlane(Value value) {
  if (auto broadcast = value.getDefiningOp<train::BroadcastOp>();
      broadcast && broadcast.getDims() == llvm::ArrayRef<int64_t>{2, 3})
    return broadcast.getInput();
  return value;
}

/// Returns the keys or values that are repeated for the queries of a group; null where none are.
Value stripGroups(Value value) {
  auto merge = value.getDefiningOp<train::ReshapeOp>();
  auto repeat = merge ? merge.getInput().getDefiningOp<train::BroadcastOp>() : train::BroadcastOp();
  if (!repeat || repeat.getDims() != llvm::ArrayRef<int64_t>{0, 1, 3, 4})
    return {};
  llvm::ArrayRef<int64_t> apart = shapeOf(repeat.getResult()), whole = shapeOf(value);
  if (apart.size() != 5 || whole.size() != 4 || whole[0] != apart[0] || whole[1] != apart[1] * apart[2] ||
      whole[2] != apart[3] || whole[3] != apart[4])
    return {};
  return repeat.getInput();
}

/// Whether the mask is made of finite numbers, so that no sum with it is infinite and no row of scores is -inf.
bool isFinite(Value value) {
  llvm::SmallVector<Value> stack{value};
  llvm::DenseSet<Value> seen;
  while (!stack.empty()) {
    Value next = stack.pop_back_val();
    if (!isa<FloatType>(getElementTypeOrSelf(next.getType())) || !seen.insert(next).second)
      continue;
    Operation *op = next.getDefiningOp();
    if (auto constant = dyn_cast_or_null<train::ConstantOp>(op)) {
      auto elements = dyn_cast<DenseFPElementsAttr>(constant.getValue());
      if (!elements || !llvm::all_of(elements.getValues<llvm::APFloat>(), [](const auto &x) { return x.isFinite(); }))
        return false;
      continue;
    }
    if (!isa_and_nonnull<train::SelectOp, train::CastOp, train::AddOp, train::SubOp, train::MulOp, train::BroadcastOp,
                         train::ReshapeOp, train::TransposeOp, train::SliceOp>(op))
      return false;
    llvm::append_range(stack, op->getOperands());
  }
  return true;
}

/// A choice between scores and a very small number.
struct Choice {
  Value condition;
  /// The number, and whether it is chosen where the condition holds.
  double masked = 0;
  bool isInverted = false;
};

struct RecognizeAttention : OpRewritePattern<train::MatmulOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(train::MatmulOp op, PatternRewriter &rewriter) const override {
    if (!isBatchedByTwo(op) || getHeadOrder(op.getLhsBatch(), op.getLhsContract()[0], true) != inOrder())
      return failure();
    // Rows that are all masked give NaN, or zeros where they are guarded.
    Value weights = op.getLhs();
    bool isGuarded = false;
    if (auto select = weights.getDefiningOp<train::SelectOp>()) {
      auto isNan = select.getCondition().getDefiningOp<train::IsNanOp>();
      if (!isNan || isNan.getInput() != select.getRhs() || getSplatValue(select.getLhs()) != 0.0)
        return failure();
      weights = select.getRhs();
      isGuarded = true;
    }
    auto softmax = weights.getDefiningOp<train::SoftmaxOp>();
    if (!softmax)
      return failure();

    double scale = 1;
    Value mask;
    Choice choice;
    train::MatmulOp scores = matchScores(softmax.getInput(), scale, mask, choice);
    if (!scores)
      return failure();
    // Operands may be read in any order of their dims: transposes fold into matmuls.
    llvm::SmallVector<int64_t> queryOrder = getHeadOrder(scores.getLhsBatch(), scores.getLhsContract()[0], true);
    llvm::SmallVector<int64_t> keyOrder = getHeadOrder(scores.getRhsBatch(), scores.getRhsContract()[0], true);
    llvm::SmallVector<int64_t> valueOrder = getHeadOrder(op.getRhsBatch(), op.getRhsContract()[0], false);
    Value query = peel(scores.getLhs(), scale, queryOrder), key = peel(scores.getRhs(), scale, keyOrder);
    Value value = op.getRhs();
    int64_t tokens = shapeOf(scores.getResult())[2], keys = shapeOf(scores.getResult())[3];
    bool isCausal = false;
    if (choice.condition) {
      isCausal = isLowerTriangle(stripToPlane(choice.condition), keys - tokens, choice.isInverted) && keys >= tokens;
      // The number that is chosen instead of a score leaves nothing of the key, as if it were added.
      if (!isCausal && (choice.masked > kAbsorbing || (!isGuarded && !std::isfinite(choice.masked))))
        return failure();
    } else if (mask) {
      auto select = stripToPlane(mask).getDefiningOp<train::SelectOp>();
      std::optional<double> kept = select ? getSplatValue(select.getLhs()) : std::nullopt;
      std::optional<double> low = select ? getSplatValue(select.getRhs()) : std::nullopt;
      isCausal = kept && low && *kept == 0 && *low <= kMasked && keys >= tokens &&
                 isLowerTriangle(select.getCondition(), keys - tokens);
      // The op gives zeros for a row without keys; without the guard the graph gives NaN. It gives its mask no
      // gradient.
      if (!isCausal && ((!isGuarded && !isFinite(mask)) || dependsOnTrainable(mask)))
        return failure();
      if (isCausal)
        mask = {};
    }
    Value fewKeys = keyOrder == inOrder() ? stripGroups(key) : Value();
    Value fewValues = valueOrder == inOrder() ? stripGroups(value) : Value();
    if (fewKeys && fewValues && shapeOf(fewKeys)[1] == shapeOf(fewValues)[1]) {
      key = fewKeys;
      value = fewValues;
    }
    if (choice.condition && !isCausal) {
      auto type = cast<RankedTensorType>(scores.getType());
      auto splat = [&](double number) {
        Attribute value = rewriter.getFloatAttr(type.getElementType(), number);
        return train::ConstantOp::create(rewriter, op.getLoc(), type, DenseElementsAttr::get(type, value)).getResult();
      };
      Value kept = splat(0), low = splat(choice.masked);
      mask = train::SelectOp::create(rewriter, op.getLoc(), type, choice.condition, choice.isInverted ? low : kept,
                                     choice.isInverted ? kept : low);
    }
    query = putInOrder(query, queryOrder, op.getLoc(), rewriter);
    key = putInOrder(key, keyOrder, op.getLoc(), rewriter);
    value = putInOrder(value, valueOrder, op.getLoc(), rewriter);
    auto rows = RankedTensorType::get(shapeOf(op.getResult()).drop_back(), op.getType().getElementType());
    auto attention = train::AttentionOp::create(rewriter, op.getLoc(), op.getType(), rows, query, key, value, mask,
                                                llvm::APFloat(scale), isCausal);
    rewriter.replaceOp(op, attention.getResult());
    return success();
  }

private:
  static llvm::SmallVector<int64_t> inOrder() { return {0, 1, 2, 3}; }

  /// Matches q · k, scaled, with an added mask or a condition that chooses between scores and a very small number.
  static train::MatmulOp matchScores(Value value, double &scale, Value &mask, Choice &choice) {
    auto matchProduct = [](Value candidate, double &factor) {
      auto product = peelScale(candidate, factor).getDefiningOp<train::MatmulOp>();
      return product && isBatchedByTwo(product) ? product : train::MatmulOp();
    };
    if (auto add = value.getDefiningOp<train::AddOp>()) {
      for (auto [a, b] : {std::pair(add.getLhs(), add.getRhs()), std::pair(add.getRhs(), add.getLhs())}) {
        double factor = 1;
        if (train::MatmulOp product = matchProduct(a, factor)) {
          scale *= factor;
          mask = b;
          return product;
        }
      }
      return {};
    }
    if (auto select = value.getDefiningOp<train::SelectOp>()) {
      for (bool isInverted : {false, true}) {
        std::optional<double> low = getSplatValue(isInverted ? select.getLhs() : select.getRhs());
        if (!low || *low > kMasked)
          continue;
        choice = {select.getCondition(), *low, isInverted};
        return matchProduct(isInverted ? select.getRhs() : select.getLhs(), scale);
      }
      return {};
    }
    return matchProduct(value, scale);
  }
};

struct TrainRecognizeAttentionPass : windlass::impl::TrainRecognizeAttentionBase<TrainRecognizeAttentionPass> {
  void runOnOperation() override {
    RewritePatternSet patterns(&getContext());
    patterns.add<RecognizeAttention>(&getContext());
    if (failed(applyPatternsGreedily(getOperation(), std::move(patterns))))
      signalPassFailure();
  }
};

} // namespace
