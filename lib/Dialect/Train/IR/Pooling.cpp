// Pooling and its gradients.
#include "SpatialParts.h"

#include <cmath>

using namespace mlir;
using namespace windlass::train;

namespace {

/// Returns the sizes of the result of pooling an input of the sizes `input`.
FailureOr<Shape> inferPooled(Emit emit, ArrayRef<int64_t> input, const Windows &windows) {
  FailureOr<Shape> spatial = windows.inferSpatial(emit, input);
  if (failed(spatial) || failed(windows.checkInside(emit, input)))
    return failure();
  if (input[0] < 1 || input[1] < 1)
    return emit() << "has an operand of sizes " << toText(input) << "; it takes at least one sample and one channel";
  Shape result{input[0], input[1]};
  llvm::append_range(result, *spatial);
  return result;
}

template <class Adaptor> Windows getWindows(Adaptor op) {
  return {op.getWindow(), op.getStrides(), op.getDilations(), op.getPads()};
}

template <class Adaptor> FailureOr<Types> inferPool(Adaptor op, Emit emit) {
  auto input = typeOf(op.getInput());
  FailureOr<Shape> result = inferPooled(emit, input.getShape(), getWindows(op));
  if (failed(result))
    return failure();
  return Types{makeType(*result, input.getElementType())};
}

FailureOr<Types> inferMaxPoolGrad(MaxPoolGradOp::Adaptor op, Emit emit) {
  auto input = typeOf(op.getInput());
  FailureOr<Shape> result = inferPooled(emit, input.getShape(), getWindows(op));
  if (failed(result) ||
      failed(checkType(emit, op.getGradient(), makeType(*result, input.getElementType()), "gradient")))
    return failure();
  return Types{input};
}

FailureOr<Types> inferAveragePoolGrad(AveragePoolGradOp::Adaptor op, Emit emit) {
  Type element = typeOf(op.getGradient()).getElementType();
  FailureOr<Shape> result = inferPooled(emit, op.getSizes(), getWindows(op));
  if (failed(result) || failed(checkType(emit, op.getGradient(), makeType(*result, element), "gradient")))
    return failure();
  return Types{makeType(op.getSizes(), element)};
}

/// Returns the halo of the first spatial dim, where each window counts its pads as elements, or counts them nowhere.
std::optional<Halo> findPoolHalo(const Windows &windows, bool countsAlike, RankedTensorType input,
                                 RankedTensorType result) {
  bool hasPads = windows.pads[0] > 0 || windows.pads[windows.window.size()] > 0;
  if (hasPads && !countsAlike)
    return std::nullopt;
  return findHalo(windows, input.getDimSize(2), result.getDimSize(2));
}

bool countsAlike(AveragePoolOp op) { return op.getCountsPads(); }
bool countsAlike(AveragePoolGradOp op) { return op.getCountsPads(); }
template <class Op> bool countsAlike(Op) { return true; }

/// The dims of a pooling's input and result in terms of its factors.
struct Dims {
  ValueFactors input, result;
};

template <class Op> Dims addPoolDims(OpFactors &factors, Op op, RankedTensorType input, RankedTensorType result) {
  DimFactors batch{factors.add("batch", input.getDimSize(0))}, channels{factors.add("channels", input.getDimSize(1))};
  Dims dims{{batch, channels}, {batch, channels}};
  addSpatialDims(factors, dims.input, input, dims.result, result,
                 findPoolHalo(getWindows(op), countsAlike(op), input, result), FactorKind::Parallel);
  return dims;
}

/// Returns the cost of one operation for each element of each window.
OpCost getCost(Operation *op, RankedTensorType pooled, ArrayRef<int64_t> window) {
  OpCost cost = getTrafficCost(op);
  cost.flops = static_cast<double>(pooled.getNumElements());
  for (int64_t size : window)
    cost.flops *= static_cast<double>(size);
  return cost;
}

} // namespace

WINDLASS_INFERRED_OP(MaxPoolOp, inferPool<MaxPoolOp::Adaptor>)
WINDLASS_INFERRED_OP(MaxPoolGradOp, inferMaxPoolGrad)
WINDLASS_INFERRED_OP(AveragePoolOp, inferPool<AveragePoolOp::Adaptor>)
WINDLASS_INFERRED_OP(AveragePoolGradOp, inferAveragePoolGrad)

OpFactors MaxPoolOp::getFactors() {
  OpFactors factors;
  Dims dims = addPoolDims(factors, *this, typeOf(getInput()), typeOf(getResult()));
  factors.operands = {dims.input};
  factors.results = {dims.result};
  return factors;
}

LogicalResult MaxPoolOp::buildSplit(OpBuilder &builder, int64_t parts, SmallVectorImpl<Value> &results) {
  Maker maker{builder, getLoc()};
  SpatialParts split(maker, parts, getWindows(*this), typeOf(getInput()), typeOf(getResult()));
  Value input = split.cutWithHalo(getInput(), -INFINITY);
  results.assign(
      {split.join(maker.make<MaxPoolOp>(input, getWindow(), getStrides(), getDilations(), split.getPads()))});
  return success();
}

OpCost MaxPoolOp::getCost() { return ::getCost(*this, typeOf(getResult()), getWindow()); }

PrecisionClass MaxPoolOp::getPrecisionClass() { return PrecisionClass::Any; }

LogicalResult MaxPoolOp::buildAdjoint(OpBuilder &builder, ArrayRef<Value> resultGradients, ArrayRef<bool> active,
                                      SmallVectorImpl<Value> &gradients) {
  if (active[0])
    gradients[0] = MaxPoolGradOp::create(builder, getLoc(), resultGradients[0], getInput(), getWindow(), getStrides(),
                                         getDilations(), getPads());
  return success();
}

OpFactors MaxPoolGradOp::getFactors() {
  OpFactors factors;
  Dims dims = addPoolDims(factors, *this, typeOf(getInput()), typeOf(getGradient()));
  factors.operands = {dims.result, dims.input};
  factors.results = {dims.input};
  factors.unreducedTogether = {{0}};
  return factors;
}

LogicalResult MaxPoolGradOp::buildSplit(OpBuilder &builder, int64_t parts, SmallVectorImpl<Value> &results) {
  Maker maker{builder, getLoc()};
  SpatialParts split(maker, parts, getWindows(*this), typeOf(getInput()), typeOf(getGradient()));
  Value gradient = split.cut(getGradient()), input = split.cutWithHalo(getInput(), -INFINITY);
  results.assign({split.joinWithHalo(
      maker.make<MaxPoolGradOp>(gradient, input, getWindow(), getStrides(), getDilations(), split.getPads()))});
  return success();
}

OpCost MaxPoolGradOp::getCost() { return ::getCost(*this, typeOf(getGradient()), getWindow()); }

PrecisionClass MaxPoolGradOp::getPrecisionClass() { return PrecisionClass::Any; }

OpFactors AveragePoolOp::getFactors() {
  OpFactors factors;
  Dims dims = addPoolDims(factors, *this, typeOf(getInput()), typeOf(getResult()));
  factors.operands = {dims.input};
  factors.results = {dims.result};
  factors.unreducedTogether = {{0}};
  return factors;
}

LogicalResult AveragePoolOp::buildSplit(OpBuilder &builder, int64_t parts, SmallVectorImpl<Value> &results) {
  Maker maker{builder, getLoc()};
  SpatialParts split(maker, parts, getWindows(*this), typeOf(getInput()), typeOf(getResult()));
  Value input = split.cutWithHalo(getInput(), 0);
  results.assign({split.join(
      maker.make<AveragePoolOp>(input, getWindow(), getStrides(), getDilations(), split.getPads(), getCountsPads()))});
  return success();
}

OpCost AveragePoolOp::getCost() { return ::getCost(*this, typeOf(getResult()), getWindow()); }

PrecisionClass AveragePoolOp::getPrecisionClass() { return PrecisionClass::Any; }

LogicalResult AveragePoolOp::buildAdjoint(OpBuilder &builder, ArrayRef<Value> resultGradients, ArrayRef<bool> active,
                                          SmallVectorImpl<Value> &gradients) {
  if (active[0])
    gradients[0] = AveragePoolGradOp::create(builder, getLoc(), resultGradients[0], typeOf(getInput()).getShape(),
                                             getWindow(), getStrides(), getDilations(), getPads(), getCountsPads());
  return success();
}

OpFactors AveragePoolGradOp::getFactors() {
  OpFactors factors;
  Dims dims = addPoolDims(factors, *this, typeOf(getResult()), typeOf(getGradient()));
  factors.operands = {dims.result};
  factors.results = {dims.input};
  factors.unreducedTogether = {{0}};
  return factors;
}

LogicalResult AveragePoolGradOp::buildSplit(OpBuilder &builder, int64_t parts, SmallVectorImpl<Value> &results) {
  Maker maker{builder, getLoc()};
  SpatialParts split(maker, parts, getWindows(*this), typeOf(getResult()), typeOf(getGradient()));
  Value gradient = split.cut(getGradient());
  results.assign({split.joinWithHalo(maker.make<AveragePoolGradOp>(gradient, split.getSizesWithHalo(getSizes()),
                                                                   getWindow(), getStrides(), getDilations(),
                                                                   split.getPads(), getCountsPads()))});
  return success();
}

OpCost AveragePoolGradOp::getCost() { return ::getCost(*this, typeOf(getGradient()), getWindow()); }

PrecisionClass AveragePoolGradOp::getPrecisionClass() { return PrecisionClass::Any; }
