//===- RecognizeExperts.cpp - the experts of a mixture --------------------===//

#include "Indices.h"
#include "Match.h"

#include "windlass/Conversion/OnnxToTrain/MissedExperts.h"
#include "windlass/Conversion/OnnxToTrain/OnnxToTrain.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallPtrSet.h"

using namespace mlir;
using namespace windlass;

namespace windlass {
#define GEN_PASS_DEF_TRAINRECOGNIZEEXPERTS
#include "windlass/Conversion/OnnxToTrain/Passes.h.inc"
} // namespace windlass

namespace {

using train::ExpertActivation;

/// The indices of a layer. `kMixed` is what results are summed over: a token's choices, where their matrices are
/// gathered, or all experts. `kHidden` counts the outputs of the first matrices, `kWidth` the inputs of the last one.
enum : unsigned { kToken, kMixed, kChoice, kWidth, kHidden, kIn, kOut };

/// The matrices [experts, .., ..] of a product.
struct Matrices {
  Value value;
  bool inputsFirst = false;
  /// The expert of each token and choice, where matrices are gathered; null where all experts compute all tokens.
  IndexedValue choices;

  bool isLike(const Matrices &other) const {
    return inputsFirst == other.inputsFirst && choices.value == other.choices.value &&
           choices.dims == other.choices.dims && shapeOf(value)[0] == shapeOf(other.value)[0];
  }
};

/// A layer of experts over primitives.
struct Layer {
  IndexedValue input, choices, weights;
  Matrices up, down, gate;
  ExpertActivation activation = ExpertActivation::relu;
  /// Whether the halves of the hidden values are activated ones and their factors.
  bool hasHalves = false;
};

bool isWhole(const DimIndices &dim, unsigned index, int64_t size) { return dim == wholeIndex(index, size); }

/// Looks through casts between integers, floats of whole numbers, and booleans, and through changes of dims.
IndexedValue stepBackCasts(IndexedValue value) {
  while (true) {
    value = stepBackAll(std::move(value));
    auto cast = value.value.getDefiningOp<train::CastOp>();
    if (!cast)
      return value;
    value.value = cast.getInput();
  }
}

class Matcher {
public:
  Matcher(int64_t tokens, int64_t out) : tokens(tokens), out(out) {}

  /// Matches a layer whose result has one or more dims of tokens, and then one of outputs.
  bool matchLayer(Operation *root);

  Layer layer;
  int64_t tokens, mixed = 0, chosen = 0, width = 0, hidden = 0, in = 0, out;

private:
  bool matchMixed(const IndexedValue &results, const IndexedValue &weights);
  bool matchResults(IndexedValue value);
  bool matchHidden(IndexedValue value);
  bool matchFirst(IndexedValue value, unsigned outputs, int64_t count, Matrices &matrices);
  bool matchDenseWeights(const IndexedValue &dense);
  bool matchWeightsOfChoices(IndexedValue hot, IndexedValue weights);
  IndexedValue matchOneHot(IndexedValue value) const;
  bool findProduct(IndexedValue value, unsigned contracted, unsigned outputs, int64_t outputCount, IndexedValue &rows,
                   Matrices &matrices) const;
  Matrices findMatrices(IndexedValue value, unsigned outputs, int64_t outputCount, unsigned inputs) const;
  bool matchScattered(const IndexedValue &value);
  bool findTokensAnd(unsigned index, int64_t size, IndexedValue value, IndexedValue &found) const;
};

/// Steps back to the first value of the chain whose elements are in the order of tokens and then of another index,
/// whatever its dims are.
bool Matcher::findTokensAnd(unsigned index, int64_t size, IndexedValue value, IndexedValue &found) const {
  DimIndices parts = wholeIndex(kToken, tokens);
  llvm::append_range(parts, wholeIndex(index, size));
  bool isFound = false;
  do {
    if (value.flatten() == parts) {
      found = value;
      isFound = true;
    }
  } while (stepBack(value));
  return isFound;
}

bool Matcher::matchLayer(Operation *root) {
  llvm::ArrayRef<int64_t> shape = shapeOf(root->getResult(0));
  IndexedValue result{root->getResult(0), {}};
  int64_t rest = tokens;
  for (int64_t size : shape.drop_back()) {
    rest /= size;
    result.dims.push_back(size == 1 ? DimIndices() : DimIndices{{kToken, size, rest}});
  }
  result.dims.push_back(wholeIndex(kOut, out));

  std::optional<SumOfProducts> sum = findSumOfProducts(result, kMixed);
  if (!sum)
    return false;
  mixed = sum->size;
  return matchMixed(sum->lhs, sum->rhs) || matchMixed(sum->rhs, sum->lhs);
}

/// Matches the results of experts and the weights by which they are mixed.
bool Matcher::matchMixed(const IndexedValue &results, const IndexedValue &weights) {
  layer = Layer();
  IndexedValue spread = stepBackAll(weights);
  auto isOfOutputs = [](const IndexPart &part) { return part.index == kOut; };
  if (llvm::any_of(spread.flatten(), isOfOutputs) || !matchResults(results))
    return false;
  if (!layer.down.choices.value)
    return matchDenseWeights(spread);
  chosen = mixed;
  layer.choices = layer.down.choices;
  return findTokensAnd(kMixed, mixed, weights, layer.weights);
}

/// Finds matrices whose dims run over experts, `outputs` and `inputs`: gathered for the choices, or those of all
/// experts.
Matrices Matcher::findMatrices(IndexedValue value, unsigned outputs, int64_t outputCount, unsigned inputs) const {
  auto isOutputs = [&](const DimIndices &dim) { return isWhole(dim, outputs, outputCount); };
  auto isInputs = [&](const DimIndices &dim) { return dim.size() <= 1 && (dim.empty() || dim[0].index == inputs); };
  auto setOrder = [&](const DimIndices &first, const DimIndices &second, Matrices &matrices) {
    matrices.inputsFirst = isInputs(first) && isOutputs(second);
    return matrices.inputsFirst || (isOutputs(first) && isInputs(second));
  };
  do {
    Matrices matrices;
    if (auto gather = value.value.getDefiningOp<train::GatherOp>()) {
      size_t rank = value.dims.size();
      if (gather.getAxis() != 0 || shapeOf(gather.getInput()).size() != 3 || rank < 3)
        return {};
      matrices.value = gather.getInput();
      IndexedValue indices{gather.getIndices(), value.dims};
      indices.dims.truncate(rank - 2);
      bool fits = findTokensAnd(kMixed, mixed, std::move(indices), matrices.choices) &&
                  setOrder(value.dims[rank - 2], value.dims[rank - 1], matrices);
      return fits ? matrices : Matrices();
    }
    matrices.value = value.value;
    if (value.dims.size() == 3 && isWhole(value.dims[0], kMixed, mixed) &&
        setOrder(value.dims[1], value.dims[2], matrices))
      return matrices;
  } while (stepBack(value));
  return {};
}

/// Splits a product into rows and the matrices that multiply them.
bool Matcher::findProduct(IndexedValue value, unsigned contracted, unsigned outputs, int64_t outputCount,
                          IndexedValue &rows, Matrices &matrices) const {
  value = stepBackAll(std::move(value));
  auto matmul = value.value.getDefiningOp<train::MatmulOp>();
  auto factors = matmul ? findFactors(matmul, value.dims, contracted) : std::nullopt;
  if (!factors)
    return false;
  for (auto [one, other] : {std::pair(&factors->first, &factors->second), std::pair(&factors->second, &factors->first)})
    if (matrices = findMatrices(*one, outputs, outputCount, contracted); matrices.value) {
      rows = *other;
      return true;
    }
  return false;
}

bool Matcher::matchResults(IndexedValue value) {
  IndexedValue rows;
  if (!findProduct(std::move(value), kWidth, kOut, out, rows, layer.down))
    return false;
  width = shapeOf(layer.down.value)[layer.down.inputsFirst ? 1 : 2];
  return matchHidden(std::move(rows));
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

bool Matcher::matchHidden(IndexedValue value) {
  value = stepBackAll(std::move(value));
  if (Activated plain = matchActivation(value.value); plain.input) {
    layer.activation = plain.kind;
    hidden = width;
    return matchFirst({plain.input, value.dims}, kWidth, width, layer.up);
  }
  auto mul = value.value.getDefiningOp<train::MulOp>();
  if (!mul)
    return false;
  for (auto [active, other] : {std::pair(mul.getLhs(), mul.getRhs()), std::pair(mul.getRhs(), mul.getLhs())}) {
    IndexedValue gate = stepBackAll({active, value.dims}), factor = stepBackAll({other, value.dims});
    Activated activated = matchActivation(gate.value);
    if (!activated.input)
      continue;
    gate = stepBackAll({activated.input, gate.dims});
    layer.gate = Matrices();
    layer.activation = activated.kind;
    Value before = matchHalf(gate.value, false);
    // Halves of another dim, such as of pairs, are not those of the hidden values.
    if (before && before == matchHalf(factor.value, true) && gate.dims == factor.dims &&
        isWhole(gate.dims.back(), kWidth, width)) {
      layer.hasHalves = true;
      hidden = 2 * width;
      gate.dims.back() = wholeIndex(kHidden, hidden);
      return matchFirst({before, gate.dims}, kHidden, hidden, layer.up);
    }
    hidden = width;
    if (matchFirst(std::move(gate), kWidth, width, layer.gate)) {
      IndexedValue input = layer.input;
      return matchFirst(std::move(factor), kWidth, width, layer.up) && layer.gate.isLike(layer.up) &&
             input.value == layer.input.value && input.dims == layer.input.dims;
    }
  }
  return false;
}

/// Matches a product by first matrices, with `count` outputs.
bool Matcher::matchFirst(IndexedValue value, unsigned outputs, int64_t count, Matrices &matrices) {
  IndexedValue rows;
  if (!findProduct(std::move(value), kIn, outputs, count, rows, matrices) || !matrices.isLike(layer.down))
    return false;
  in = shapeOf(matrices.value)[matrices.inputsFirst ? 1 : 2];
  return findTokensAnd(kIn, in, std::move(rows), layer.input);
}

/// Returns the choices of numbers that are 1 where an expert is chosen, and 0 elsewhere.
IndexedValue Matcher::matchOneHot(IndexedValue value) const {
  value = stepBackCasts(std::move(value));
  auto compare = value.value.getDefiningOp<train::CompareOp>();
  if (!compare || compare.getPredicate() != train::Predicate::equal)
    return {};
  for (auto [one, other] :
       {std::pair(compare.getLhs(), compare.getRhs()), std::pair(compare.getRhs(), compare.getLhs())}) {
    IndexedValue count = stepBackAll({other, value.dims});
    auto iota = count.value.getDefiningOp<train::IotaOp>();
    if (iota && shapeOf(count.value).size() == 1 && isWhole(count.dims[0], kMixed, mixed) &&
        iota.getStart().convertToDouble() == 0 && iota.getStep().convertToDouble() == 1)
      return {one, value.dims};
  }
  return {};
}

/// Matches weights of all experts that are sums over choices of `hot`, which is 1 for the chosen expert, times
/// `weights`.
bool Matcher::matchWeightsOfChoices(IndexedValue hot, IndexedValue weights) {
  IndexedValue choices = matchOneHot(std::move(hot));
  return choices.value && findTokensAnd(kChoice, chosen, std::move(choices), layer.choices) &&
         findTokensAnd(kChoice, chosen, std::move(weights), layer.weights);
}

/// Finds choices and weights in weights of all experts.
bool Matcher::matchDenseWeights(const IndexedValue &dense) {
  std::optional<SumOfProducts> sum = findSumOfProducts(dense, kChoice);
  if (!sum)
    return matchScattered(dense);
  chosen = sum->size;
  return matchWeightsOfChoices(sum->lhs, sum->rhs) || matchWeightsOfChoices(sum->rhs, sum->lhs);
}

/// Whether a condition holds exactly where `added` adds an element: it compares the number of such elements with 0.
bool isWhereAdded(Value condition, train::ScatterElementsAddOp added) {
  auto compare = condition.getDefiningOp<train::CompareOp>();
  auto count = compare ? compare.getLhs().getDefiningOp<train::ScatterElementsAddOp>() : train::ScatterElementsAddOp();
  return count && compare.getPredicate() == train::Predicate::greater && getSplatValue(compare.getRhs()) == 0.0 &&
         count.getIndices() == added.getIndices() && count.getAxis() == added.getAxis() &&
         getSplatValue(count.getInput()) == 1.0;
}

/// Matches weights that are put at the places of their choices, among zeros.
bool Matcher::matchScattered(const IndexedValue &value) {
  auto scatter = value.value.getDefiningOp<train::ScatterElementsAddOp>();
  if (auto select = value.value.getDefiningOp<train::SelectOp>()) {
    scatter = select.getLhs().getDefiningOp<train::ScatterElementsAddOp>();
    if (!scatter || getSplatValue(select.getRhs()) != 0.0 || !isWhereAdded(select.getCondition(), scatter))
      return false;
  }
  if (!scatter || !isWhole(value.dims[scatter.getAxis()], kMixed, mixed))
    return false;
  llvm::SmallVector<DimIndices> dims = value.dims;
  chosen = shapeOf(scatter.getInput())[scatter.getAxis()];
  dims[scatter.getAxis()] = wholeIndex(kChoice, chosen);
  return findTokensAnd(kChoice, chosen, {scatter.getIndices(), dims}, layer.choices) &&
         findTokensAnd(kChoice, chosen, {scatter.getInput(), dims}, layer.weights);
}

struct RecognizeExperts : RewritePattern {
  RecognizeExperts(MLIRContext *context, StringRef root) : RewritePattern(root, 1, context) {}

  LogicalResult matchAndRewrite(Operation *op, PatternRewriter &rewriter) const override {
    auto type = cast<RankedTensorType>(op->getResult(0).getType());
    if (type.getRank() < 2 || type.getNumElements() == 0)
      return failure();
    int64_t out = type.getShape().back();
    Matcher matcher(type.getNumElements() / out, out);
    if (!matcher.matchLayer(op))
      return failure();
    const Layer &layer = matcher.layer;
    auto hasType = [&](Value value) {
      return !value || getElementTypeOrSelf(value.getType()) == type.getElementType();
    };
    if (!llvm::all_of(llvm::ArrayRef<Value>{layer.input.value, layer.weights.value, layer.up.value, layer.down.value,
                                            layer.gate.value},
                      hasType))
      return failure();
    auto reshapeTo = [&](llvm::ArrayRef<int64_t> shape, Value value) -> Value {
      auto wanted = cast<RankedTensorType>(value.getType()).clone(shape);
      return value.getType() == wanted ? value : train::ReshapeOp::create(rewriter, op->getLoc(), wanted, value);
    };
    int64_t tokens = matcher.tokens;
    Value result = train::ExpertsOp::create(rewriter, op->getLoc(), reshapeTo({tokens, matcher.in}, layer.input.value),
                                            reshapeTo({tokens, matcher.chosen}, layer.choices.value),
                                            reshapeTo({tokens, matcher.chosen}, layer.weights.value), layer.up.value,
                                            layer.down.value, layer.gate.value, Value(), IntegerAttr(),
                                            layer.activation, layer.hasHalves, layer.up.inputsFirst);
    rewriter.replaceOp(op, reshapeTo(type.getShape(), result));
    return success();
  }
};

struct TrainRecognizeExpertsPass : windlass::impl::TrainRecognizeExpertsBase<TrainRecognizeExpertsPass> {
  void runOnOperation() override {
    RewritePatternSet patterns(&getContext());
    patterns.add<RecognizeExperts>(&getContext(), train::ReduceOp::getOperationName());
    patterns.add<RecognizeExperts>(&getContext(), train::MatmulOp::getOperationName());
    if (failed(applyPatternsGreedily(getOperation(), std::move(patterns))))
      signalPassFailure();
  }
};

} // namespace

/// Whether a value is a parameter that trains, perhaps with other dims.
static bool isTrainable(Value value) {
  while (isa_and_nonnull<train::ReshapeOp, train::TransposeOp>(value.getDefiningOp()))
    value = value.getDefiningOp()->getOperand(0);
  auto read = value.getDefiningOp<train::ReadOp>();
  auto parameter = read ? SymbolTable::lookupNearestSymbolFrom<train::ParameterOp>(read, read.getParameterAttr())
                        : train::ParameterOp();
  return parameter && parameter.getTrainable();
}

std::string windlass::explainMissedExperts(train::GatherOp op) {
  if (op.getAxis() != 0 || shapeOf(op.getInput()).size() != 3 || !isTrainable(op.getInput()))
    return "";
  constexpr size_t mostOperators = 64;
  llvm::SmallVector<Value> stack{op.getResult()};
  llvm::SmallPtrSet<Operation *, 16> seen;
  int products = 0;
  while (!stack.empty() && seen.size() < mostOperators)
    for (Operation *user : stack.pop_back_val().getUsers()) {
      if (!seen.insert(user).second || (products > 0 && isa<train::ReduceOp>(user)))
        continue;
      if (isa<train::MatmulOp>(user) && ++products > 1)
        return "what mixes the results of its layer is no sum of them by the weights of the choices";
      if (isa<train::ReshapeOp, train::TransposeOp, train::BroadcastOp>(user) || isa<train::MatmulOp>(user) ||
          (products > 0 &&
           (isa<train::SplitOp, train::SliceOp, train::MulOp>(user) || matchActivation(user->getResult(0)).input)))
        llvm::append_range(stack, user->getResults());
      else
        return products > 0 ? "what it gives passes '" + user->getName().stripDialect().str() + "'" : "";
    }
  return "";
}
