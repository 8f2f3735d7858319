//===- RecognizeAttention.cpp - scaled dot-product attention --------------===//

#include "Match.h"

#include "windlass/Conversion/OnnxToTrain/MissedAttention.h"
#include "windlass/Conversion/OnnxToTrain/OnnxToTrain.h"
#include "windlass/Support/Words.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallPtrSet.h"

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

/// The parts of an attention that ends in a product.
struct Match {
  train::MatmulOp scores;
  double scale = 1;
  Value mask;
  Choice choice;
  bool isCausal = false;
  /// Why the product ends no attention, as the end of a sentence about its softmax; empty where it does.
  std::string miss;
};

Match miss(const llvm::Twine &why) {
  Match match;
  match.miss = why.str();
  return match;
}

constexpr int64_t kInOrder[] = {0, 1, 2, 3};

std::string describeBatch(train::MatmulOp op) {
  return countOf(static_cast<int64_t>(op.getLhsBatch().size()), "batch dim") + ", not batch and heads";
}

/// Returns the name of the operator that computes a value.
std::string getProducer(Value value) {
  Operation *op = value.getDefiningOp();
  return op ? op->getName().stripDialect().str() : "input";
}

/// Matches q · k, scaled, with an added mask, and with a condition that chooses between that and a very small number.
Match matchScores(Value value) {
  Match match;
  auto matchProduct = [&](Value candidate) {
    match.scale = 1;
    auto product = peelScale(candidate, match.scale).getDefiningOp<train::MatmulOp>();
    match.scores = product && isBatchedByTwo(product) ? product : train::MatmulOp();
    return match.scores != nullptr;
  };
  Value scores = value;
  if (auto select = value.getDefiningOp<train::SelectOp>())
    for (bool isInverted : {true, false})
      if (std::optional<double> low = getSplatValue(isInverted ? select.getLhs() : select.getRhs());
          low && *low <= kMasked) {
        match.choice = {select.getCondition(), *low, isInverted};
        scores = isInverted ? select.getRhs() : select.getLhs();
      }
  if (auto add = scores.getDefiningOp<train::AddOp>()) {
    for (auto [a, b] : {std::pair(add.getLhs(), add.getRhs()), std::pair(add.getRhs(), add.getLhs())})
      if (matchProduct(a)) {
        match.mask = b;
        return match;
      }
    scores = add.getLhs();
  } else if (matchProduct(scores)) {
    return match;
  }
  double scale = 1;
  scores = peelScale(scores, scale);
  if (auto product = scores.getDefiningOp<train::MatmulOp>())
    return miss("its first product has " + describeBatch(product));
  return miss("its scores pass '" + getProducer(scores) + "' on the way from the first product");
}

/// Finds the parts of the attention that ends in `op`, a product of weights and values.
Match matchAttention(train::MatmulOp op) {
  if (!isBatchedByTwo(op))
    return miss("its second product has " + describeBatch(op));
  if (!llvm::equal(getHeadOrder(op.getLhsBatch(), op.getLhsContract()[0], true), kInOrder))
    return miss("its second product reads the weights with their dims in another order");
  // Rows that are all masked give NaN, or zeros where they are guarded.
  Value weights = op.getLhs();
  bool isGuarded = false;
  if (auto select = weights.getDefiningOp<train::SelectOp>()) {
    auto isNan = select.getCondition().getDefiningOp<train::IsNanOp>();
    if (isNan && isNan.getInput() == select.getRhs() && getSplatValue(select.getLhs()) == 0.0) {
      weights = select.getRhs();
      isGuarded = true;
    }
  }
  auto softmax = weights.getDefiningOp<train::SoftmaxOp>();
  if (!softmax)
    return miss("its weights pass '" + getProducer(weights) + "' on the way to the second product");
  Match match = matchScores(softmax.getInput());
  if (!match.miss.empty())
    return match;
  int64_t tokens = shapeOf(match.scores.getResult())[2], keys = shapeOf(match.scores.getResult())[3];
  const Choice &choice = match.choice;
  if (choice.condition) {
    match.isCausal =
        isLowerTriangle(stripToPlane(choice.condition), keys - tokens, choice.isInverted) && keys >= tokens;
    // The number that is chosen instead of a score leaves nothing of the key, as if it were added.
    if (!match.isCausal && (choice.masked > kAbsorbing || (!isGuarded && !std::isfinite(choice.masked))))
      return miss("the number for masked scores is not between -1e30 and the least finite one");
  } else if (match.mask) {
    auto select = stripToPlane(match.mask).getDefiningOp<train::SelectOp>();
    std::optional<double> kept = select ? getSplatValue(select.getLhs()) : std::nullopt;
    std::optional<double> low = select ? getSplatValue(select.getRhs()) : std::nullopt;
    match.isCausal = kept && low && *kept == 0 && *low <= kMasked && keys >= tokens &&
                     isLowerTriangle(select.getCondition(), keys - tokens);
    if (match.isCausal)
      match.mask = {};
  }
  // The op gives zeros for a row without keys; without the guard the graph gives NaN. It gives its mask no gradient.
  if (match.mask && dependsOnTrainable(match.mask))
    return miss("a gradient flows into what is added to its scores");
  if (match.mask && !isGuarded && !isFinite(match.mask))
    return miss("what is added to its scores may be infinite");
  return match;
}

struct RecognizeAttention : OpRewritePattern<train::MatmulOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(train::MatmulOp op, PatternRewriter &rewriter) const override {
    Match match = matchAttention(op);
    if (!match.miss.empty())
      return failure();
    train::MatmulOp scores = match.scores;
    const Choice &choice = match.choice;
    Value mask = match.mask;
    // Operands may be read in any order of their dims: transposes fold into matmuls.
    llvm::SmallVector<int64_t> queryOrder = getHeadOrder(scores.getLhsBatch(), scores.getLhsContract()[0], true);
    llvm::SmallVector<int64_t> keyOrder = getHeadOrder(scores.getRhsBatch(), scores.getRhsContract()[0], true);
    llvm::SmallVector<int64_t> valueOrder = getHeadOrder(op.getRhsBatch(), op.getRhsContract()[0], false);
    Value query = peel(scores.getLhs(), match.scale, queryOrder), key = peel(scores.getRhs(), match.scale, keyOrder);
    Value value = op.getRhs();
    Value fewKeys = llvm::equal(keyOrder, kInOrder) ? stripGroups(key) : Value();
    Value fewValues = llvm::equal(valueOrder, kInOrder) ? stripGroups(value) : Value();
    if (fewKeys && fewValues && shapeOf(fewKeys)[1] == shapeOf(fewValues)[1]) {
      key = fewKeys;
      value = fewValues;
    }
    if (choice.condition && !match.isCausal) {
      auto type = cast<RankedTensorType>(scores.getType());
      auto splat = [&](double number) {
        Attribute value = rewriter.getFloatAttr(type.getElementType(), number);
        return train::ConstantOp::create(rewriter, op.getLoc(), type, DenseElementsAttr::get(type, value)).getResult();
      };
      Value kept = mask ? mask : splat(0), low = splat(choice.masked);
      mask = train::SelectOp::create(rewriter, op.getLoc(), type, choice.condition, choice.isInverted ? low : kept,
                                     choice.isInverted ? kept : low);
    }
    query = putInOrder(query, queryOrder, op.getLoc(), rewriter);
    key = putInOrder(key, keyOrder, op.getLoc(), rewriter);
    value = putInOrder(value, valueOrder, op.getLoc(), rewriter);
    auto rows = RankedTensorType::get(shapeOf(op.getResult()).drop_back(), op.getType().getElementType());
    auto attention = train::AttentionOp::create(rewriter, op.getLoc(), op.getType(), rows, query, key, value, mask,
                                                llvm::APFloat(match.scale), match.isCausal);
    rewriter.replaceOp(op, attention.getResult());
    return success();
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

/// Looks from `value` through at most eight operators with one user each, and returns the product that this ends in.
static train::MatmulOp findProductBehind(Value value) {
  for (int step = 0; step < 8 && value.hasOneUse(); ++step) {
    Operation *user = *value.user_begin();
    if (auto product = dyn_cast<train::MatmulOp>(user))
      return value == product.getLhs() ? product : train::MatmulOp();
    if (user->getNumResults() != 1)
      return {};
    value = user->getResult(0);
  }
  return {};
}

/// Whether a product with batch dims, which is one of two activations, is among what `value` is computed from. Looks
/// through at most 64 operators, each once.
static bool isFromProduct(Value value) {
  constexpr size_t mostOperators = 64;
  llvm::SmallVector<Value> stack{value};
  llvm::SmallPtrSet<Operation *, 16> seen;
  while (!stack.empty() && seen.size() < mostOperators) {
    Operation *op = stack.pop_back_val().getDefiningOp();
    if (!op || !seen.insert(op).second)
      continue;
    if (auto product = dyn_cast<train::MatmulOp>(op)) {
      if (!product.getLhsBatch().empty())
        return true;
      continue;
    }
    if (isa<train::AddOp, train::SubOp, train::MulOp, train::DivOp, train::SelectOp, train::TanhOp, train::CastOp,
            train::ReshapeOp, train::ConcatOp, train::SliceOp, train::TransposeOp>(op))
      llvm::append_range(stack, op->getOperands());
  }
  return false;
}

std::string windlass::explainMissedAttention(train::SoftmaxOp op) {
  train::MatmulOp product = findProductBehind(op.getResult());
  return product && isFromProduct(op.getInput()) ? matchAttention(product).miss : "";
}
