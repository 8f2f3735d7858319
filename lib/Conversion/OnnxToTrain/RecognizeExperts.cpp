//===- RecognizeExperts.cpp - the experts of a mixture --------------------===//

#include "Match.h"

#include "windlass/Conversion/OnnxToTrain/OnnxToTrain.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"
#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace windlass;

namespace windlass {
#define GEN_PASS_DEF_TRAINRECOGNIZEEXPERTS
#include "windlass/Conversion/OnnxToTrain/Passes.h.inc"
} // namespace windlass

namespace {

using train::ExpertActivation;

/// Looks through reshapes.
Value skipReshapes(Value value) {
  while (auto reshape = value.getDefiningOp<train::ReshapeOp>())
    value = reshape.getInput();
  return value;
}

/// Looks through reshapes to a value of that shape; null where there is none.
Value findShaped(Value value, llvm::ArrayRef<int64_t> shape) {
  while (shapeOf(value) != shape) {
    auto reshape = value.getDefiningOp<train::ReshapeOp>();
    if (!reshape)
      return {};
    value = reshape.getInput();
  }
  return value;
}

/// Looks through reshapes and casts between integers, floats of whole numbers, and booleans.
Value skipCasts(Value value) {
  while (Operation *op = value.getDefiningOp()) {
    if (!isa<train::CastOp, train::ReshapeOp>(op))
      break;
    value = op->getOperand(0);
  }
  return value;
}

/// A product of rows with the matrices [experts, .., ..] of their experts.
struct ExpertProduct {
  Value rows, matrices;
  bool inputsFirst = false;
  /// The expert of each row, where matrices are gathered; null where each matrix multiplies all rows.
  Value choices;
};

/// Matches a product whose one factor is a matrix gathered for each row: result [rows, outputs], up to dims of size 1.
ExpertProduct matchGathered(train::MatmulOp op) {
  if (op.getLhsBatch() != llvm::ArrayRef<int64_t>{0} || op.getRhsBatch() != llvm::ArrayRef<int64_t>{0} ||
      op.getLhsContract().size() != 1)
    return {};
  for (bool isLhs : {true, false}) {
    auto gather = (isLhs ? op.getLhs() : op.getRhs()).getDefiningOp<train::GatherOp>();
    Value rows = isLhs ? op.getRhs() : op.getLhs();
    int64_t contracted = (isLhs ? op.getLhsContract() : op.getRhsContract())[0];
    if (!gather || gather.getAxis() != 0 || shapeOf(gather.getInput()).size() != 3 ||
        shapeOf(gather.getIndices()).size() != 1)
      continue;
    int64_t count = shapeOf(gather.getIndices())[0], depth = shapeOf(gather.getResult())[contracted];
    if (shapeOf(rows)[0] == count && cast<RankedTensorType>(rows.getType()).getNumElements() == count * depth)
      return {rows, gather.getInput(), contracted == 1, gather.getIndices()};
  }
  return {};
}

/// Matches a product of the rows [experts, tokens, inputs] with each expert's matrix.
ExpertProduct matchDense(train::MatmulOp op) {
  if (op.getLhsBatch() != llvm::ArrayRef<int64_t>{0} || op.getRhsBatch() != llvm::ArrayRef<int64_t>{0} ||
      op.getLhsContract() != llvm::ArrayRef<int64_t>{2} || op.getRhsContract().size() != 1 ||
      shapeOf(op.getLhs()).size() != 3 || shapeOf(op.getRhs()).size() != 3)
    return {};
  return {op.getLhs(), op.getRhs(), op.getRhsContract()[0] == 1, {}};
}

struct Activated {
  Value input;
  ExpertActivation kind = ExpertActivation::relu;
};

Activated matchActivation(Value value) {
  Operation *op = value.getDefiningOp();
  if (isa_and_nonnull<train::SiluOp>(op))
    return {op->getOperand(0), ExpertActivation::silu};
  if (isa_and_nonnull<train::GeluErfOp>(op))
    return {op->getOperand(0), ExpertActivation::gelu_erf};
  if (isa_and_nonnull<train::GeluTanhOp>(op))
    return {op->getOperand(0), ExpertActivation::gelu_tanh};
  if (isa_and_nonnull<train::ReluOp>(op))
    return {op->getOperand(0), ExpertActivation::relu};
  return {};
}

/// The hidden values of experts before the activation. Those that are gated have their halves along the last dim.
struct HiddenValues {
  Value before;
  ExpertActivation activation = ExpertActivation::relu;
  bool gated = false;
};

HiddenValues matchHidden(Value value) {
  value = skipReshapes(value);
  if (Activated plain = matchActivation(value); plain.input)
    return {skipReshapes(plain.input), plain.kind, false};
  auto mul = value.getDefiningOp<train::MulOp>();
  if (!mul)
    return {};
  for (auto [active, gate] : {std::pair(mul.getLhs(), mul.getRhs()), std::pair(mul.getRhs(), mul.getLhs())}) {
    Activated half = matchActivation(skipReshapes(active));
    Value before = half.input ? matchHalf(skipReshapes(half.input), false) : Value();
    if (before && matchHalf(skipReshapes(gate), true) == before)
      return {before, half.kind, true};
  }
  return {};
}

/// A layer of experts over primitives, with choices and weights [tokens, chosen].
struct Layer {
  Value input, choices, weights, up, down;
  HiddenValues hidden;
  bool inputsFirst = false;
};

/// Whether sizes and element types of a layer are those of `train.experts` with a result of that type.
bool fits(const Layer &layer, RankedTensorType result) {
  llvm::ArrayRef<int64_t> input = shapeOf(layer.input), up = shapeOf(layer.up), down = shapeOf(layer.down);
  int64_t output = layer.inputsFirst ? 2 : 1, from = layer.inputsFirst ? 1 : 2;
  int64_t hidden = up[output], width = layer.hidden.gated ? hidden / 2 : hidden;
  // Halves of another dim, such as of pairs, are not those of the hidden values.
  bool hasHalves = !layer.hidden.gated || shapeOf(layer.hidden.before).back() == hidden;
  bool hasOneType =
      llvm::all_of(llvm::ArrayRef<Value>{layer.input, layer.weights, layer.up, layer.down},
                   [&](Value of) { return getElementTypeOrSelf(of.getType()) == result.getElementType(); });
  return hasHalves && hasOneType && up[0] == down[0] && up[from] == input[1] && down[from] == width &&
         result.getShape() == llvm::ArrayRef<int64_t>{input[0], down[output]};
}

/// Matches both products of a layer: those of gathered matrices, or of all experts. `first` becomes the first product.
bool matchProducts(Value results, bool isGathered, Layer &layer, ExpertProduct &first) {
  auto match = [&](Value value) {
    auto matmul = skipReshapes(value).getDefiningOp<train::MatmulOp>();
    return !matmul ? ExpertProduct() : isGathered ? matchGathered(matmul) : matchDense(matmul);
  };
  ExpertProduct second = match(results);
  if (!second.rows)
    return false;
  layer.hidden = matchHidden(second.rows);
  first = layer.hidden.before ? match(layer.hidden.before) : ExpertProduct();
  layer.up = first.matrices;
  layer.down = second.matrices;
  layer.inputsFirst = first.inputsFirst;
  return first.rows && first.inputsFirst == second.inputsFirst && first.choices == second.choices;
}

/// Returns what a value spreads over its last dim, which has an element for each row; null where it is something else.
Value matchSpread(Value value) {
  auto broadcast = value.getDefiningOp<train::BroadcastOp>();
  llvm::ArrayRef<int64_t> shape = shapeOf(value);
  if (!broadcast || shape.empty())
    return {};
  // Dims of size 1 may stand for the last one.
  auto last = static_cast<int64_t>(shape.size()) - 1;
  int64_t rows = 1;
  for (auto [size, dim] : llvm::zip_equal(shapeOf(broadcast.getInput()), broadcast.getDims())) {
    if (size != (dim == last ? 1 : shape[dim]))
      return {};
    rows *= size;
  }
  return rows * shape[last] == broadcast.getType().getNumElements() ? broadcast.getInput() : Value();
}

/// Splits a product into results of experts and their weights, which are spread over the last dim.
std::pair<Value, Value> matchWeighted(Value value) {
  auto mul = skipReshapes(value).getDefiningOp<train::MulOp>();
  if (!mul)
    return {};
  if (Value weights = matchSpread(mul.getRhs()))
    return {mul.getLhs(), weights};
  Value weights = matchSpread(mul.getLhs());
  return {weights ? mul.getRhs() : Value(), weights};
}

/// Returns x [tokens, inputs] of rows that repeat each token for each of its choices.
Value matchRepeatedTokens(Value rows, int64_t tokens, int64_t chosen) {
  auto broadcast = skipReshapes(rows).getDefiningOp<train::BroadcastOp>();
  if (!broadcast)
    return {};
  llvm::ArrayRef<int64_t> shape = shapeOf(broadcast.getResult());
  Value input = broadcast.getInput();
  if (shape.size() != 3 || shape[0] != tokens || shape[1] != chosen)
    return {};
  int64_t width = shape[2];
  bool isRepeated = broadcast.getDims() == llvm::ArrayRef<int64_t>{0, 2} ||
                    (broadcast.getDims() == llvm::ArrayRef<int64_t>{0, 1, 2} && shapeOf(input)[1] == 1);
  return isRepeated ? findShaped(input, {tokens, width}) : Value();
}

/// Matches the form that gathers the matrices of each choice.
bool matchGatheredLayer(train::ReduceOp sum, Layer &layer) {
  llvm::ArrayRef<int64_t> shape = shapeOf(sum.getInput());
  if (shape.size() != 3 || sum.getDims() != llvm::ArrayRef<int64_t>{1})
    return false;
  int64_t tokens = shape[0], chosen = shape[1];
  auto [results, weights] = matchWeighted(sum.getInput());
  ExpertProduct first;
  if (!results || !matchProducts(results, true, layer, first))
    return false;
  layer.weights = findShaped(weights, {tokens, chosen});
  layer.choices = findShaped(first.choices, {tokens, chosen});
  layer.input = matchRepeatedTokens(first.rows, tokens, chosen);
  return layer.weights && layer.choices && layer.input;
}

/// Returns the choices [tokens, chosen] of numbers [tokens, chosen, experts] that are 1 where an expert is chosen.
Value matchOneHot(Value value) {
  auto compare = skipCasts(value).getDefiningOp<train::CompareOp>();
  if (!compare || compare.getPredicate() != train::Predicate::equal || shapeOf(compare.getResult()).size() != 3)
    return {};
  for (auto [chosen, counted] :
       {std::pair(compare.getLhs(), compare.getRhs()), std::pair(compare.getRhs(), compare.getLhs())}) {
    auto spread = chosen.getDefiningOp<train::BroadcastOp>(), numbers = counted.getDefiningOp<train::BroadcastOp>();
    auto iota = numbers ? skipReshapes(numbers.getInput()).getDefiningOp<train::IotaOp>() : train::IotaOp();
    llvm::ArrayRef<int64_t> shape = shapeOf(compare.getResult());
    if (!spread || !iota || numbers.getDims().empty() || numbers.getDims().back() != 2 ||
        shapeOf(iota.getResult()) != shape.take_back(1) || iota.getStart().convertToDouble() != 0 ||
        iota.getStep().convertToDouble() != 1)
      continue;
    if (spread.getDims().take_front(2) == llvm::ArrayRef<int64_t>{0, 1})
      return findShaped(spread.getInput(), shape.take_front(2));
  }
  return {};
}

/// Finds choices and weights in weights of all experts [tokens, experts].
bool matchDenseWeights(Value dense, Layer &layer) {
  auto matmul = skipReshapes(dense).getDefiningOp<train::MatmulOp>();
  if (!matmul || matmul.getLhsBatch() != llvm::ArrayRef<int64_t>{0} ||
      matmul.getRhsBatch() != llvm::ArrayRef<int64_t>{0} || matmul.getRhsContract() != llvm::ArrayRef<int64_t>{1})
    return false;
  layer.choices = matchOneHot(matmul.getRhs());
  layer.weights = layer.choices ? findShaped(matmul.getLhs(), shapeOf(layer.choices)) : Value();
  return bool(layer.weights);
}

/// Matches the form in which all experts compute all tokens.
bool matchDenseLayer(train::ReduceOp sum, Layer &layer) {
  llvm::ArrayRef<int64_t> shape = shapeOf(sum.getInput());
  if (shape.size() != 3 || sum.getDims() != llvm::ArrayRef<int64_t>{0})
    return false;
  auto [results, weights] = matchWeighted(sum.getInput());
  ExpertProduct first;
  if (!results || !matchProducts(results, false, layer, first))
    return false;
  // Weights come as [experts, tokens].
  auto transpose = skipReshapes(weights).getDefiningOp<train::TransposeOp>();
  auto spread = first.rows.getDefiningOp<train::BroadcastOp>();
  if (!transpose || transpose.getPermutation() != llvm::ArrayRef<int64_t>{1, 0} || !spread ||
      !matchDenseWeights(transpose.getInput(), layer))
    return false;
  llvm::ArrayRef<int64_t> rows = shapeOf(spread.getResult());
  if (spread.getDims() != llvm::ArrayRef<int64_t>{1, 2} && spread.getDims() != llvm::ArrayRef<int64_t>{0, 1, 2})
    return false;
  layer.input = findShaped(spread.getInput(), rows.drop_front());
  // The sum is over the experts, whose weights are in the same order.
  return layer.input && shapeOf(layer.choices)[0] == rows[1] && shape.take_front(2) == rows.take_front(2) &&
         shapeOf(transpose.getResult()) == rows.take_front(2);
}

struct RecognizeExperts : OpRewritePattern<train::ReduceOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(train::ReduceOp op, PatternRewriter &rewriter) const override {
    Layer layer;
    if (op.getKind() != train::ReductionKind::sum || !(matchGatheredLayer(op, layer) || matchDenseLayer(op, layer)) ||
        !fits(layer, cast<RankedTensorType>(op.getType())))
      return failure();
    rewriter.replaceOpWithNewOp<train::ExpertsOp>(op, op.getType(), layer.input, layer.choices, layer.weights, layer.up,
                                                  layer.down, Value(), IntegerAttr(), layer.hidden.activation,
                                                  layer.hidden.gated, layer.inputsFirst);
    return success();
  }
};

struct TrainRecognizeExpertsPass : windlass::impl::TrainRecognizeExpertsBase<TrainRecognizeExpertsPass> {
  void runOnOperation() override {
    RewritePatternSet patterns(&getContext());
    patterns.add<RecognizeExperts>(&getContext());
    if (failed(applyPatternsGreedily(getOperation(), std::move(patterns))))
      signalPassFailure();
  }
};

} // namespace
