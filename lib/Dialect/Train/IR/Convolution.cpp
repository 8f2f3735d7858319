// Convolution and its two gradients.
#include "SpatialParts.h"

using namespace mlir;
using namespace windlass::train;

namespace {

/// Returns the sizes of the result of a convolution of an input and a weight of the given sizes.
FailureOr<Shape> inferResult(Emit emit, ArrayRef<int64_t> input, ArrayRef<int64_t> weight, ArrayRef<int64_t> strides,
                             ArrayRef<int64_t> dilations, ArrayRef<int64_t> pads) {
  if (input.size() != weight.size() || input.size() < 3)
    return emit() << "has an input of sizes " << toText(input) << " and a weight of sizes " << toText(weight)
                  << "; both have one rank, of at least 3";
  if (llvm::any_of(llvm::concat<const int64_t>(input, weight), [](int64_t size) { return size < 1; }) ||
      input[1] % weight[1] != 0 || weight[0] % (input[1] / weight[1]) != 0)
    return emit()
           << "has an input of sizes " << toText(input) << " and a weight of sizes " << toText(weight)
           << "; the input's channels are a multiple of the weight's dim 1, and the weight's dim 0 is a multiple "
              "of that many groups";
  FailureOr<Shape> spatial = Windows{weight.drop_front(2), strides, dilations, pads}.inferSpatial(emit, input);
  if (failed(spatial))
    return failure();
  Shape result{input[0], weight[0]};
  llvm::append_range(result, *spatial);
  return result;
}

FailureOr<Types> inferConvolution(ConvolutionOp::Adaptor op, Emit emit) {
  auto input = typeOf(op.getInput()), weight = typeOf(op.getWeight());
  if (input.getElementType() != weight.getElementType())
    return emit() << "convolves " << input << " with " << weight << "; the element types must agree";
  FailureOr<Shape> result =
      inferResult(emit, input.getShape(), weight.getShape(), op.getStrides(), op.getDilations(), op.getPads());
  if (failed(result))
    return failure();
  return Types{makeType(*result, input.getElementType())};
}

/// Checks that the gradient `of` a convolution's result fits its input and its weight.
LogicalResult checkGradient(Emit emit, Value of, ArrayRef<int64_t> input, ArrayRef<int64_t> weight,
                            ArrayRef<int64_t> strides, ArrayRef<int64_t> dilations, ArrayRef<int64_t> pads) {
  FailureOr<Shape> result = inferResult(emit, input, weight, strides, dilations, pads);
  if (failed(result))
    return failure();
  return checkType(emit, of, makeType(*result, typeOf(of).getElementType()), "gradient");
}

LogicalResult checkElements(Emit emit, RankedTensorType gradient, RankedTensorType other) {
  if (gradient.getElementType() != other.getElementType())
    return emit() << "has operands " << gradient << " and " << other << "; the element types must agree";
  return success();
}

FailureOr<Types> inferDataGrad(ConvolutionDataGradOp::Adaptor op, Emit emit) {
  auto gradient = typeOf(op.getGradient()), weight = typeOf(op.getWeight());
  if (failed(checkElements(emit, gradient, weight)) ||
      failed(checkGradient(emit, op.getGradient(), op.getSizes(), weight.getShape(), op.getStrides(), op.getDilations(),
                           op.getPads())))
    return failure();
  return Types{makeType(op.getSizes(), gradient.getElementType())};
}

FailureOr<Types> inferWeightGrad(ConvolutionWeightGradOp::Adaptor op, Emit emit) {
  auto gradient = typeOf(op.getGradient()), input = typeOf(op.getInput());
  if (failed(checkElements(emit, gradient, input)) ||
      failed(checkGradient(emit, op.getGradient(), input.getShape(), op.getSizes(), op.getStrides(), op.getDilations(),
                           op.getPads())))
    return failure();
  return Types{makeType(op.getSizes(), getWideType(gradient.getElementType()))};
}

template <class Op> Windows getWindows(Op op, RankedTensorType weight) {
  return {weight.getShape().drop_front(2), op.getStrides(), op.getDilations(), op.getPads()};
}

/// The dims of a convolution's values in terms of its factors.
struct Dims {
  ValueFactors input, weight, result;
};

/// Which factors the operator sums over.
struct Summed {
  bool batch, out, in;
};

template <class Op>
Dims addConvolutionDims(OpFactors &factors, Op op, RankedTensorType input, RankedTensorType weight,
                        RankedTensorType result, Summed summed) {
  auto kind = [](bool isSummed) { return isSummed ? FactorKind::Reduction : FactorKind::Parallel; };
  int64_t in = weight.getDimSize(1), groups = input.getDimSize(1) / in;
  DimFactors batch{factors.add("batch", input.getDimSize(0), kind(summed.batch))};
  DimFactors group;
  if (groups > 1)
    group.push_back(factors.add("groups", groups));
  DimFactors outs(group), ins{factors.add("in", in, kind(summed.in))}, inputs(group);
  outs.push_back(factors.add("out", weight.getDimSize(0) / groups, kind(summed.out)));
  llvm::append_range(inputs, ins);
  Dims dims{{batch, inputs}, {outs, ins}, {batch, outs}};
  addSpatialDims(factors, dims.input, input, dims.result, result,
                 findHalo(getWindows(op, weight), input.getDimSize(2), result.getDimSize(2)), kind(summed.batch));
  for (int64_t dim = 2; dim < weight.getRank(); ++dim)
    dims.weight.push_back(
        {factors.add("window" + std::to_string(dim - 2), weight.getDimSize(dim), FactorKind::Replicated)});
  return dims;
}

/// Returns the FLOPs of a convolution, which are those of each of its gradients.
double getFlops(RankedTensorType weight, RankedTensorType result) {
  return 2.0 * static_cast<double>(result.getNumElements()) * static_cast<double>(weight.getNumElements()) /
         static_cast<double>(weight.getDimSize(0));
}

OpCost getCost(Operation *op, RankedTensorType weight, RankedTensorType result) {
  OpCost cost = getTrafficCost(op);
  cost.flops = getFlops(weight, result);
  return cost;
}

} // namespace

WINDLASS_INFERRED_OP(ConvolutionOp, inferConvolution)
WINDLASS_INFERRED_OP(ConvolutionDataGradOp, inferDataGrad)
WINDLASS_INFERRED_OP(ConvolutionWeightGradOp, inferWeightGrad)

OpFactors ConvolutionOp::getFactors() {
  OpFactors factors;
  Dims dims = addConvolutionDims(factors, *this, typeOf(getInput()), typeOf(getWeight()), typeOf(getResult()),
                                 {false, false, true});
  factors.operands = {dims.input, dims.weight};
  factors.results = {dims.result};
  factors.unreducedTogether = {{0}, {1}};
  return factors;
}

LogicalResult ConvolutionOp::buildSplit(OpBuilder &builder, int64_t parts, SmallVectorImpl<Value> &results) {
  Maker maker{builder, getLoc()};
  SpatialParts split(maker, parts, getWindows(*this, typeOf(getWeight())), typeOf(getInput()), typeOf(getResult()));
  Value input = split.cutWithHalo(getInput(), 0);
  results.assign(
      {split.join(maker.make<ConvolutionOp>(input, getWeight(), getStrides(), getDilations(), split.getPads()))});
  return success();
}

OpCost ConvolutionOp::getCost() { return ::getCost(*this, typeOf(getWeight()), typeOf(getResult())); }

PrecisionClass ConvolutionOp::getPrecisionClass() { return PrecisionClass::Contraction; }

LogicalResult ConvolutionOp::buildAdjoint(OpBuilder &builder, ArrayRef<Value> resultGradients, ArrayRef<bool> active,
                                          SmallVectorImpl<Value> &gradients) {
  if (active[0])
    gradients[0] =
        ConvolutionDataGradOp::create(builder, getLoc(), resultGradients[0], getWeight(), typeOf(getInput()).getShape(),
                                      getStrides(), getDilations(), getPads());
  if (active[1])
    gradients[1] =
        ConvolutionWeightGradOp::create(builder, getLoc(), resultGradients[0], getInput(),
                                        typeOf(getWeight()).getShape(), getStrides(), getDilations(), getPads());
  return success();
}

OpFactors ConvolutionDataGradOp::getFactors() {
  OpFactors factors;
  Dims dims = addConvolutionDims(factors, *this, typeOf(getResult()), typeOf(getWeight()), typeOf(getGradient()),
                                 {false, true, false});
  factors.operands = {dims.result, dims.weight};
  factors.results = {dims.input};
  factors.unreducedTogether = {{0}, {1}};
  return factors;
}

LogicalResult ConvolutionDataGradOp::buildSplit(OpBuilder &builder, int64_t parts, SmallVectorImpl<Value> &results) {
  Maker maker{builder, getLoc()};
  SpatialParts split(maker, parts, getWindows(*this, typeOf(getWeight())), typeOf(getResult()), typeOf(getGradient()));
  Value gradient = split.cut(getGradient());
  results.assign({split.joinWithHalo(maker.make<ConvolutionDataGradOp>(
      gradient, getWeight(), split.getSizesWithHalo(getSizes()), getStrides(), getDilations(), split.getPads()))});
  return success();
}

OpCost ConvolutionDataGradOp::getCost() { return ::getCost(*this, typeOf(getWeight()), typeOf(getGradient())); }

PrecisionClass ConvolutionDataGradOp::getPrecisionClass() { return PrecisionClass::Contraction; }

/// Builds the gradients of the two operands, in both of which the operator is linear. With the result's gradient as an
/// image, the first operand's gradient is a convolution of it, and the weight's gradient is that of this convolution.
LogicalResult ConvolutionDataGradOp::buildAdjoint(OpBuilder &builder, ArrayRef<Value> resultGradients,
                                                  ArrayRef<bool> active, SmallVectorImpl<Value> &gradients) {
  if (active[0])
    gradients[0] = ConvolutionOp::create(builder, getLoc(), resultGradients[0], getWeight(), getStrides(),
                                         getDilations(), getPads());
  if (active[1])
    gradients[1] =
        ConvolutionWeightGradOp::create(builder, getLoc(), getGradient(), resultGradients[0],
                                        typeOf(getWeight()).getShape(), getStrides(), getDilations(), getPads());
  return success();
}

OpFactors ConvolutionWeightGradOp::getFactors() {
  OpFactors factors;
  Dims dims = addConvolutionDims(factors, *this, typeOf(getInput()), typeOf(getResult()), typeOf(getGradient()),
                                 {true, false, false});
  factors.operands = {dims.result, dims.input};
  factors.results = {dims.weight};
  factors.unreducedTogether = {{0}, {1}};
  return factors;
}

LogicalResult ConvolutionWeightGradOp::buildSplit(OpBuilder &builder, int64_t parts, SmallVectorImpl<Value> &results) {
  Maker maker{builder, getLoc()};
  SpatialParts split(maker, parts, getWindows(*this, typeOf(getResult())), typeOf(getInput()), typeOf(getGradient()));
  Value gradient = split.cut(getGradient()), input = split.cutWithHalo(getInput(), 0);
  results.assign({maker.make<ConvolutionWeightGradOp>(gradient, input, getSizes(), getStrides(), getDilations(),
                                                      split.getPads())});
  return success();
}

OpCost ConvolutionWeightGradOp::getCost() { return ::getCost(*this, typeOf(getResult()), typeOf(getGradient())); }

PrecisionClass ConvolutionWeightGradOp::getPrecisionClass() { return PrecisionClass::Contraction; }
