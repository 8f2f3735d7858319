// Softmax cross entropy and the quotient of sum and count.
#include "OpSupport.h"

using namespace mlir;
using namespace windlass::train;

namespace {

LogicalResult checkLabels(Emit emit, RankedTensorType logits, RankedTensorType labels) {
  if (logits.getRank() == 0 || logits.getShape().drop_back() != labels.getShape())
    return emit() << "logits " << logits << " must have the dims of labels " << labels << " and then the classes";
  return success();
}

FailureOr<Types> inferCrossEntropy(SoftmaxCrossEntropyOp::Adaptor op, Emit emit) {
  auto logits = typeOf(op.getLogits()), labels = typeOf(op.getLabels());
  if (failed(checkLabels(emit, logits, labels)))
    return failure();
  Type element = logits.getElementType();
  return Types{makeType({}, element), makeType({}, element), makeType(labels.getShape(), element)};
}

FailureOr<Types> inferCrossEntropyGrad(SoftmaxCrossEntropyGradOp::Adaptor op, Emit emit) {
  auto logits = typeOf(op.getLogits()), labels = typeOf(op.getLabels());
  Type element = logits.getElementType();
  if (failed(checkLabels(emit, logits, labels)) ||
      failed(checkType(emit, op.getGradient(), makeType({}, element), "gradient")) ||
      failed(checkType(emit, op.getLogSum(), makeType(labels.getShape(), element), "log_sum")))
    return failure();
  return Types{logits};
}

/// Rows "d0", "d1", ... and classes; a row that is added carries the ignored label.
ValueFactors addRows(OpFactors &factors, RankedTensorType logits, RankedTensorType labels, FactorKind rows,
                     int64_t ignored) {
  ValueFactors dims = addDims(factors, labels, "d", rows);
  for (Factor &factor : factors.factors)
    factor.padding = static_cast<double>(ignored);
  dims.push_back({factors.add("classes", logits.getShape().back(), FactorKind::Inner)});
  return dims;
}

} // namespace

WINDLASS_INFERRED_OP(SoftmaxCrossEntropyOp, inferCrossEntropy)
WINDLASS_INFERRED_OP(SoftmaxCrossEntropyGradOp, inferCrossEntropyGrad)

OpFactors SoftmaxCrossEntropyOp::getFactors() {
  OpFactors factors;
  ValueFactors dims =
      addRows(factors, typeOf(getLogits()), typeOf(getLabels()), FactorKind::Reduction, getIgnoreIndex());
  ValueFactors rows(dims.begin(), dims.end() - 1);
  factors.operands = {dims, rows};
  factors.results = {{}, {}, rows};
  return factors;
}

OpCost SoftmaxCrossEntropyOp::getCost() {
  OpCost cost = getTrafficCost(*this);
  cost.flops = 18.0 * typeOf(getLogits()).getNumElements();
  return cost;
}

PrecisionClass SoftmaxCrossEntropyOp::getPrecisionClass() { return PrecisionClass::Full; }

LogicalResult SoftmaxCrossEntropyOp::buildAdjoint(OpBuilder &builder, ArrayRef<Value> resultGradients,
                                                  ArrayRef<bool> active, SmallVectorImpl<Value> &gradients) {
  if (resultGradients[1] || resultGradients[2])
    return emitOpError() << "has a gradient for its sum only, but count or log_sum lead to the loss too";
  if (active[0])
    gradients[0] = SoftmaxCrossEntropyGradOp::create(builder, getLoc(), resultGradients[0], getLogits(), getLabels(),
                                                     getLogSum(), getIgnoreIndexAttr());
  return success();
}

OpFactors SoftmaxCrossEntropyGradOp::getFactors() {
  OpFactors factors;
  ValueFactors dims =
      addRows(factors, typeOf(getLogits()), typeOf(getLabels()), FactorKind::Parallel, getIgnoreIndex());
  ValueFactors rows(dims.begin(), dims.end() - 1);
  factors.operands = {{}, dims, rows, rows};
  factors.results = {dims};
  factors.unreducedTogether = {{0}};
  return factors;
}

OpCost SoftmaxCrossEntropyGradOp::getCost() { return getTrafficCost(*this, 18); }
PrecisionClass SoftmaxCrossEntropyGradOp::getPrecisionClass() { return PrecisionClass::Full; }

OpFactors LossOp::getFactors() {
  OpFactors factors = getElementwiseFactors(*this);
  factors.unreducedTogether = {{0}};
  return factors;
}

OpCost LossOp::getCost() { return getTrafficCost(*this, 1); }
PrecisionClass LossOp::getPrecisionClass() { return PrecisionClass::Full; }

LogicalResult LossOp::buildAdjoint(OpBuilder &builder, ArrayRef<Value> resultGradients, ArrayRef<bool> active,
                                   SmallVectorImpl<Value> &gradients) {
  if (active[0])
    gradients[0] = DivOp::create(builder, getLoc(), resultGradients[0], getCount());
  return success();
}
