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
  Type element = getWideType(logits.getElementType());
  return Types{makeType({}, element), makeType({}, element), makeType(labels.getShape(), element)};
}

FailureOr<Types> inferCrossEntropyGrad(SoftmaxCrossEntropyGradOp::Adaptor op, Emit emit) {
  auto logits = typeOf(op.getLogits()), labels = typeOf(op.getLabels());
  Type element = getWideType(logits.getElementType());
  if (failed(checkLabels(emit, logits, labels)) ||
      failed(checkType(emit, op.getGradient(), makeType({}, element), "gradient")) ||
      failed(checkType(emit, op.getLogSum(), makeType(labels.getShape(), element), "log_sum")))
    return failure();
  return Types{logits};
}

/// Adds factors for rows, "d0", "d1", ..., and classes; a row that pads carries the ignored label.
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

/// Treats each part of a row's classes as a row of its own. The part that has the label knows its logit and the
/// logarithm of its own sum of exponentials; the difference from the whole row's logarithm is added. (After Shoeybi et
/// al.: Megatron-LM, arXiv:1909.08053, section 3, where rows are combined in the same way.)
LogicalResult SoftmaxCrossEntropyOp::buildSplit(OpBuilder &builder, int64_t parts, SmallVectorImpl<Value> &results) {
  Maker maker{builder, getLoc()};
  auto logits = typeOf(getLogits()), labels = typeOf(getLabels());
  int64_t rank = labels.getRank(), classes = logits.getShape().back() / parts;
  Shape shape(labels.getShape());
  shape.push_back(parts);
  auto labelsType = makeType(shape, labels.getElementType());
  Shape rows = countDims(rank), all = countDims(rank + 1);

  // Labels count from the first class of each part. A label that is no class at all stays invalid in every part.
  Value label = maker.spread(getLabels(), rows, shape);
  Value first = maker.make<IotaOp>(makeType({parts}, labels.getElementType()), 0, APFloat(0.0),
                                   APFloat(static_cast<double>(classes)));
  Value own = maker.make<SubOp>(label, maker.spread(first, {rank}, shape));
  auto isBelow = [&](Value value, int64_t bound) {
    return maker.make<AndOp>(maker.compare(Predicate::greater_equal, value, maker.splat(labelsType, 0)),
                             maker.compare(Predicate::less, value, maker.splat(labelsType, bound)));
  };
  Value isIgnored =
      maker.compare(Predicate::equal, label, maker.splat(labelsType, static_cast<int64_t>(getIgnoreIndex())));
  Value isOwn = isBelow(own, classes);
  Value isOther = maker.make<AndOp>(isBelow(label, classes * parts), maker.make<NotOp>(isOwn));
  constexpr int64_t nowhere = -1;
  own = maker.make<SelectOp>(maker.make<OrOp>(isIgnored, isOther), maker.splat(labelsType, nowhere), own);
  shape.push_back(classes);
  auto loss = SoftmaxCrossEntropyOp::create(builder, getLoc(), maker.reshape(getLogits(), shape), own, nowhere);
  shape.pop_back();

  Value logSum = JoinedLogs(maker, loss.getLogSum(), rank).log;
  Value lacking = maker.make<SubOp>(maker.spread(logSum, rows, shape), loss.getLogSum());
  lacking = maker.make<SelectOp>(maker.make<AndOp>(isOwn, maker.make<NotOp>(isIgnored)), lacking,
                                 maker.splat(lacking.getType(), 0));
  results.assign(
      {maker.make<AddOp>(loss.getSum(), maker.reduce(ReductionKind::sum, lacking, all)), loss.getCount(), logSum});
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

/// Computes the gradient (exp(logit - log_sum) - [class is the label]): the logarithm of the row's sum is known, so
/// nothing is left to reduce.
LogicalResult SoftmaxCrossEntropyGradOp::buildSplit(OpBuilder &builder, int64_t, SmallVectorImpl<Value> &results) {
  Maker maker{builder, getLoc()};
  auto logits = typeOf(getLogits()), labels = typeOf(getLabels());
  Shape rows = countDims(labels.getRank());
  Value label = maker.spread(getLabels(), rows, logits.getShape());
  Value number =
      maker.make<IotaOp>(makeType({logits.getShape().back()}, labels.getElementType()), 0, APFloat(0.0), APFloat(1.0));
  Value isLabel = maker.compare(Predicate::equal, label, maker.spread(number, {labels.getRank()}, logits.getShape()));
  Value counts =
      maker.compare(Predicate::not_equal, label, maker.splat(label.getType(), static_cast<int64_t>(getIgnoreIndex())));
  Value wide = maker.widen(getLogits());
  Value chance = maker.make<ExpOp>(maker.make<SubOp>(wide, maker.spread(getLogSum(), rows, logits.getShape())));
  Value difference = maker.make<SelectOp>(isLabel, maker.make<SubOp>(chance, maker.splat(wide.getType(), 1)), chance);
  Value scaled = maker.make<MulOp>(difference, maker.spread(getGradient(), {}, logits.getShape()));
  Value gradient = maker.make<SelectOp>(counts, scaled, maker.splat(wide.getType(), 0));
  results.assign({maker.cast(gradient, logits.getElementType())});
  return success();
}

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
