// The experts of a mixture and their gradient.
#include "OpSupport.h"

using namespace mlir;
using namespace windlass::train;

namespace {

/// The sizes of a layer of experts. `stored` of the `experts` are in the matrices; `hidden` is of `up`.
struct Sizes {
  int64_t tokens, in, chosen, stored, experts, hidden, width, out;
  bool inputsFirst;

  Shape getUp() const { return inputsFirst ? Shape{stored, in, hidden} : Shape{stored, hidden, in}; }
  Shape getDown() const { return inputsFirst ? Shape{stored, width, out} : Shape{stored, out, width}; }
};

template <class Op> Sizes readSizes(Op op) {
  auto input = typeOf(op.getInput()), up = typeOf(op.getUp()), down = typeOf(op.getDown());
  bool inputsFirst = op.getInputsFirst();
  int64_t hidden = up.getDimSize(inputsFirst ? 2 : 1), stored = up.getDimSize(0);
  return {input.getDimSize(0),
          input.getDimSize(1),
          typeOf(op.getChoices()).getDimSize(1),
          stored,
          static_cast<int64_t>(op.getAllRows().value_or(stored)),
          hidden,
          op.getGated() ? hidden / 2 : hidden,
          down.getDimSize(inputsFirst ? 2 : 1),
          inputsFirst};
}

/// Checks the operands that `train.experts` and its gradient have in common.
template <class Adaptor> FailureOr<Sizes> checkSizes(Adaptor op, Emit emit) {
  auto input = typeOf(op.getInput()), choices = typeOf(op.getChoices());
  if (input.getRank() != 2 || choices.getRank() != 2 || typeOf(op.getUp()).getRank() != 3 ||
      typeOf(op.getDown()).getRank() != 3)
    return emit() << "has an input " << input << ", choices " << choices << ", and matrices " << typeOf(op.getUp())
                  << " and " << typeOf(op.getDown()) << "; they have two, two, three and three dims";
  Sizes sizes = readSizes(op);
  Type element = input.getElementType();
  if (sizes.stored < 1 || sizes.chosen < 1 || sizes.hidden < 1 || (op.getGated() && sizes.hidden % 2 != 0))
    return emit() << "has " << sizes.stored << " experts of " << sizes.hidden
                  << " hidden values, of which a token takes " << sizes.chosen
                  << "; all are positive, and hidden values that are gated are an even number";
  if (op.getGate() && op.getGated())
    return emit() << "has a gate of its own, and halves that are gated; it has one of them";
  if (failed(checkType(emit, op.getChoices(), makeType({sizes.tokens, sizes.chosen}, choices.getElementType()),
                       "choices")) ||
      failed(checkType(emit, op.getWeights(), makeType({sizes.tokens, sizes.chosen}, element), "weights")) ||
      failed(checkType(emit, op.getUp(), makeType(sizes.getUp(), element), "up")) ||
      failed(checkType(emit, op.getDown(), makeType(sizes.getDown(), element), "down")) ||
      (op.getGate() && failed(checkType(emit, op.getGate(), makeType(sizes.getUp(), element), "gate"))) ||
      failed(checkTableParts(emit, sizes.stored, op.getFirst(), op.getAllRows())))
    return failure();
  return sizes;
}

FailureOr<Types> inferExperts(ExpertsOp::Adaptor op, Emit emit) {
  FailureOr<Sizes> sizes = checkSizes(op, emit);
  if (failed(sizes))
    return failure();
  return Types{makeType({sizes->tokens, sizes->out}, typeOf(op.getInput()).getElementType())};
}

FailureOr<Types> inferExpertsGrad(ExpertsGradOp::Adaptor op, Emit emit) {
  FailureOr<Sizes> sizes = checkSizes(op, emit);
  Type element = typeOf(op.getInput()).getElementType();
  if (failed(sizes) ||
      failed(checkType(emit, op.getGradient(), makeType({sizes->tokens, sizes->out}, element), "gradient")))
    return failure();
  Type wide = getWideType(element), up = makeType(sizes->getUp(), wide);
  Types types{op.getInput().getType(), op.getWeights().getType(), up, makeType(sizes->getDown(), wide)};
  if (op.getGate())
    types.push_back(up);
  return types;
}

/// The dims of a layer's values in terms of its factors.
struct Dims {
  ValueFactors input, choices, up, down, result, first;
};

/// Adds the factors of a layer whose matrices' gradients are sums over the tokens, or are not computed.
template <class Op> Dims addExpertDims(OpFactors &factors, Op op, FactorKind tokenKind) {
  Sizes sizes = readSizes(op);
  Dims dims;
  DimFactors tokens{factors.add("tokens", sizes.tokens, tokenKind)};
  DimFactors chosen{factors.add("chosen", sizes.chosen, FactorKind::Replicated)};
  // The function between the matrices needs whole sums over the inputs, and so does its gradient over the outputs.
  DimFactors in{factors.add("in", sizes.in, FactorKind::Replicated)};
  DimFactors out{factors.add("out", sizes.out, FactorKind::Replicated)};
  DimFactors width{factors.add("width", sizes.width, FactorKind::Reduction)}, hidden;
  if (sizes.hidden != sizes.width)
    hidden.push_back(factors.add("halves", 2, FactorKind::Replicated));
  llvm::append_range(hidden, width);
  int64_t parts = op.getFirst() ? typeOf(op.getFirst()).getDimSize(0) : 1;
  unsigned index =
      factors.add("experts", sizes.stored / parts, op.getFirst() ? FactorKind::Replicated : FactorKind::Reduction);
  DimFactors experts{index};
  if (op.getFirst()) {
    experts.insert(experts.begin(), factors.add("parts", parts, FactorKind::Reduction));
    dims.first = {{experts.front()}};
  } else {
    factors.factors[index].isLookedUp = true;
  }
  dims.input = {tokens, in};
  dims.choices = {tokens, chosen};
  dims.up = sizes.inputsFirst ? ValueFactors{experts, in, hidden} : ValueFactors{experts, hidden, in};
  dims.down = sizes.inputsFirst ? ValueFactors{experts, width, out} : ValueFactors{experts, out, width};
  dims.result = {tokens, out};
  return dims;
}

/// Returns the FLOPs of `ups` products by an expert's first matrix, or its first two, and `downs` by its last one,
/// where all experts are chosen equally often.
template <class Op> double getFlops(Op op, double ups, double downs) {
  Sizes sizes = readSizes(op);
  double rows = static_cast<double>(sizes.tokens) * static_cast<double>(sizes.chosen) *
                static_cast<double>(sizes.stored) / static_cast<double>(sizes.experts);
  int64_t hidden = op.getGate() ? 2 * sizes.hidden : sizes.hidden;
  return 2 * rows *
         (ups * static_cast<double>(sizes.in * hidden) + downs * static_cast<double>(sizes.width * sizes.out));
}

} // namespace

WINDLASS_INFERRED_OP(ExpertsOp, inferExperts)
WINDLASS_INFERRED_OP(ExpertsGradOp, inferExpertsGrad)

OpFactors ExpertsOp::getFactors() {
  OpFactors factors;
  Dims dims = addExpertDims(factors, *this, FactorKind::Parallel);
  factors.operands = {dims.input, dims.choices, dims.choices, dims.up, dims.down};
  if (getGate())
    factors.operands.push_back(dims.up);
  if (getFirst())
    factors.operands.push_back(dims.first);
  factors.results = {dims.result};
  factors.unreducedTogether = {{2}, {4}};
  return factors;
}

OpCost ExpertsOp::getCost() {
  OpCost cost = getTrafficCost(*this);
  cost.flops = getFlops(*this, 1, 1);
  return cost;
}

PrecisionClass ExpertsOp::getPrecisionClass() { return PrecisionClass::Contraction; }

LogicalResult ExpertsOp::buildAdjoint(OpBuilder &builder, ArrayRef<Value> resultGradients, ArrayRef<bool> active,
                                      SmallVectorImpl<Value> &gradients) {
  auto grad = ExpertsGradOp::create(builder, getLoc(), resultGradients[0], getInput(), getChoices(), getWeights(),
                                    getUp(), getDown(), getGate(), Value(), IntegerAttr(), getActivation(), getGated(),
                                    getInputsFirst());
  // The operands of the results, in their order.
  constexpr unsigned operands[] = {0, 2, 3, 4, 5};
  for (auto [result, operand] : llvm::zip(grad->getResults(), operands))
    if (active[operand])
      gradients[operand] = result;
  return success();
}

/// Lets each part compute what its experts give, so that the sum of the parts is the whole.
LogicalResult ExpertsOp::buildSplit(OpBuilder &builder, int64_t parts, SmallVectorImpl<Value> &results) {
  Maker maker{builder, getLoc()};
  int64_t experts = readSizes(*this).experts;
  results.assign({maker.make<ExpertsOp>(getInput(), getChoices(), getWeights(), getUp(), getDown(), getGate(),
                                        maker.firstOfParts(experts, parts), builder.getI64IntegerAttr(experts),
                                        getActivation(), getGated(), getInputsFirst())});
  return success();
}

OpFactors ExpertsGradOp::getFactors() {
  OpFactors factors;
  Dims dims = addExpertDims(factors, *this, FactorKind::Reduction);
  factors.operands = {dims.result, dims.input, dims.choices, dims.choices, dims.up, dims.down};
  factors.results = {dims.input, dims.choices, dims.up, dims.down};
  if (getGate()) {
    factors.operands.push_back(dims.up);
    factors.results.push_back(dims.up);
  }
  if (getFirst())
    factors.operands.push_back(dims.first);
  factors.unreducedTogether = {{0}};
  return factors;
}

OpCost ExpertsGradOp::getCost() {
  OpCost cost = getTrafficCost(*this);
  // The hidden values again, and for each matrix its own gradient and that of what it multiplies.
  cost.flops = getFlops(*this, 3, 2);
  return cost;
}

PrecisionClass ExpertsGradOp::getPrecisionClass() { return PrecisionClass::Contraction; }

LogicalResult ExpertsGradOp::buildSplit(OpBuilder &builder, int64_t parts, SmallVectorImpl<Value> &results) {
  Maker maker{builder, getLoc()};
  int64_t experts = readSizes(*this).experts;
  auto grad = ExpertsGradOp::create(builder, getLoc(), getGradient(), getInput(), getChoices(), getWeights(), getUp(),
                                    getDown(), getGate(), maker.firstOfParts(experts, parts),
                                    builder.getI64IntegerAttr(experts), getActivation(), getGated(), getInputsFirst());
  results.assign(grad->result_begin(), grad->result_end());
  return success();
}
