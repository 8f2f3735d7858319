// Reductions, softmax and norms.
#include "OpSupport.h"

using namespace mlir;
using namespace windlass::train;

namespace {

FailureOr<Types> inferReduce(ReduceOp::Adaptor op, Emit emit) {
  auto type = typeOf(op.getInput());
  if (type.getElementType().isInteger(1))
    return emit() << "combines elements of " << type << "; cast truth values to numbers before";
  if (failed(checkDistinctDims(emit, op.getDims(), type.getRank(), "dims")))
    return failure();
  if (!llvm::is_sorted(op.getDims()))
    return emit() << "dims " << toText(op.getDims()) << " must increase";
  Shape shape;
  for (int64_t dim = 0; dim < type.getRank(); ++dim)
    if (!llvm::is_contained(op.getDims(), dim))
      shape.push_back(type.getDimSize(dim));
  return Types{makeType(shape, op.getWide() ? getWideType(type.getElementType()) : type.getElementType())};
}

LogicalResult checkRows(Emit emit, RankedTensorType type) {
  if (type.getRank() == 0)
    return emit() << "works on rows, but its operand " << type << " has no dims";
  return success();
}

/// Returns the type of one number per row of `type`.
RankedTensorType getRowType(RankedTensorType type) {
  return makeType(type.getShape().drop_back(), getWideType(type.getElementType()));
}
/// Returns the type of one number per column.
RankedTensorType getColumnType(RankedTensorType type) {
  return makeType(type.getShape().take_back(), type.getElementType());
}
RankedTensorType getColumnSumType(RankedTensorType type) {
  return makeType(type.getShape().take_back(), getWideType(type.getElementType()));
}

LogicalResult checkEpsilon(Emit emit, const llvm::APFloat &epsilon) {
  if (!epsilon.isFinite() || epsilon.isNegative())
    return emit() << "epsilon " << epsilon.convertToDouble() << " must be a number of at least 0";
  return success();
}

FailureOr<Types> inferLayerNorm(LayerNormOp::Adaptor op, Emit emit) {
  auto type = typeOf(op.getInput());
  if (failed(checkRows(emit, type)) || failed(checkType(emit, op.getScale(), getColumnType(type), "scale")) ||
      (op.getBias() && failed(checkType(emit, op.getBias(), getColumnType(type), "bias"))))
    return failure();
  if (failed(checkEpsilon(emit, op.getEpsilon())))
    return failure();
  return Types{type, getRowType(type), getRowType(type)};
}

FailureOr<Types> inferLayerNormGrad(LayerNormGradOp::Adaptor op, Emit emit) {
  auto type = typeOf(op.getInput());
  if (failed(checkRows(emit, type)) || failed(checkType(emit, op.getGradient(), type, "gradient")) ||
      failed(checkType(emit, op.getScale(), getColumnType(type), "scale")) ||
      failed(checkType(emit, op.getMean(), getRowType(type), "mean")) ||
      failed(checkType(emit, op.getRstd(), getRowType(type), "rstd")))
    return failure();
  return Types{type, getColumnSumType(type), getColumnSumType(type)};
}

FailureOr<Types> inferRmsNorm(RmsNormOp::Adaptor op, Emit emit) {
  auto type = typeOf(op.getInput());
  if (failed(checkRows(emit, type)) || failed(checkType(emit, op.getScale(), getColumnType(type), "scale")) ||
      failed(checkEpsilon(emit, op.getEpsilon())))
    return failure();
  return Types{type, getRowType(type)};
}

FailureOr<Types> inferRmsNormGrad(RmsNormGradOp::Adaptor op, Emit emit) {
  auto type = typeOf(op.getInput());
  if (failed(checkRows(emit, type)) || failed(checkType(emit, op.getGradient(), type, "gradient")) ||
      failed(checkType(emit, op.getScale(), getColumnType(type), "scale")) ||
      failed(checkType(emit, op.getRstd(), getRowType(type), "rstd")))
    return failure();
  return Types{type, getColumnSumType(type)};
}

/// Adds the factors of the dims of `type`: rows "d0", "d1", ... of a kind, and the row's elements "row", reduced
/// inside.
ValueFactors addRowDims(OpFactors &factors, RankedTensorType type, FactorKind rows = FactorKind::Parallel) {
  ValueFactors dims = addDims(factors, getRowType(type), "d", rows);
  dims.push_back({factors.add("row", type.getShape().back(), FactorKind::Inner)});
  return dims;
}

ValueFactors dropLast(const ValueFactors &dims) { return ValueFactors(dims.begin(), dims.end() - 1); }

/// Builds arithmetic on rows of one type without operators that reduce the rows inside.
struct RowMaker : Maker {
  RowMaker(OpBuilder &builder, Location loc, RankedTensorType type) : Maker{builder, loc}, type(type) {}

  Value mul(Value lhs, Value rhs) const { return make<MulOp>(lhs, rhs); }
  Value sub(Value lhs, Value rhs) const { return make<SubOp>(lhs, rhs); }
  /// Returns one number per row, or per column, spread to each element of the row or column.
  Value spreadRows(Value rows) const { return spread(rows, countDims(type.getRank() - 1), type.getShape()); }
  Value spreadColumns(Value columns) const { return spread(columns, {type.getRank() - 1}, type.getShape()); }
  Value reduceRows(ReductionKind kind, Value value) const { return reduce(kind, value, {type.getRank() - 1}); }
  Value sumRows(Value value) const { return reduceRows(ReductionKind::sum, value); }
  Value sumColumns(Value value) const { return reduce(ReductionKind::sum, value, countDims(type.getRank() - 1)); }
  Value averageRows(Value value) const {
    Value sum = sumRows(value);
    return make<DivOp>(sum, splat(sum.getType(), type.getShape().back()));
  }
  /// Returns 1/sqrt(mean of squares + epsilon) of the rows.
  Value reciprocalRoot(Value value, const llvm::APFloat &epsilon) const {
    Value average = averageRows(mul(value, value));
    return make<RsqrtOp>(make<AddOp>(average, splat(average.getType(), epsilon.convertToDouble())));
  }

  /// Returns the rows in the element type in which the operator's rows are stored.
  Value narrow(Value rows) const { return cast(rows, type.getElementType()); }

  RankedTensorType type;
};

} // namespace

WINDLASS_INFERRED_OP(ReduceOp, inferReduce)
WINDLASS_INFERRED_OP(LayerNormOp, inferLayerNorm)
WINDLASS_INFERRED_OP(LayerNormGradOp, inferLayerNormGrad)
WINDLASS_INFERRED_OP(RmsNormOp, inferRmsNorm)
WINDLASS_INFERRED_OP(RmsNormGradOp, inferRmsNormGrad)

// reduce

OpFactors ReduceOp::getFactors() {
  OpFactors factors;
  auto type = typeOf(getInput());
  ValueFactors source = addDims(factors, type), target;
  for (int64_t dim = 0; dim < type.getRank(); ++dim) {
    if (!llvm::is_contained(getDims(), dim)) {
      target.push_back(source[dim]);
      continue;
    }
    Factor &factor = factors.factors[source[dim][0]];
    factor.kind = FactorKind::Reduction;
    factor.reduction = getKind();
    constexpr double infinity = std::numeric_limits<double>::infinity();
    factor.padding = getKind() == ReductionKind::sum ? 0 : getKind() == ReductionKind::max ? -infinity : infinity;
  }
  factors.operands = {source};
  factors.results = {target};
  if (getKind() == ReductionKind::sum)
    factors.unreducedTogether = {{0}};
  return factors;
}

OpCost ReduceOp::getCost() {
  OpCost cost = getTrafficCost(*this);
  cost.flops = typeOf(getInput()).getNumElements();
  return cost;
}

PrecisionClass ReduceOp::getPrecisionClass() { return getClass(*this, PrecisionClass::Full); }

LogicalResult ReduceOp::buildAdjoint(OpBuilder &builder, ArrayRef<Value> resultGradients, ArrayRef<bool> active,
                                     SmallVectorImpl<Value> &gradients) {
  if (!active[0])
    return success();
  gradients[0] = resultGradients[0];
  if (getDims().empty())
    return success();
  Maker maker{builder, getLoc()};
  auto type = typeOf(getInput());
  SmallVector<int64_t> kept;
  for (int64_t dim = 0; dim < type.getRank(); ++dim)
    if (!llvm::is_contained(getDims(), dim))
      kept.push_back(dim);
  auto spread = [&](Value value) { return maker.spread(value, kept, type.getShape()); };
  if (getKind() == ReductionKind::sum) {
    gradients[0] = spread(resultGradients[0]);
    return success();
  }
  // Equal extremes share the gradient, as in PyTorch's amax.
  Value isExtreme = maker.compare(Predicate::equal, getInput(), spread(getResult()));
  Value count = maker.reduce(ReductionKind::sum, maker.cast(isExtreme, type.getElementType()), getDims());
  Value share = spread(maker.make<DivOp>(resultGradients[0], count));
  gradients[0] = maker.make<SelectOp>(isExtreme, share, maker.splat(type, 0));
  return success();
}

// softmax

LogicalResult SoftmaxOp::verify() {
  return checkRows([&] { return emitOpError(); }, typeOf(getInput()));
}

OpFactors SoftmaxOp::getFactors() {
  OpFactors factors;
  ValueFactors dims = addRowDims(factors, typeOf(getInput()));
  factors.factors.back().padding = -std::numeric_limits<double>::infinity();
  factors.operands = {dims};
  factors.results = {dims};
  return factors;
}

OpCost SoftmaxOp::getCost() { return getTrafficCost(*this, 20); }
PrecisionClass SoftmaxOp::getPrecisionClass() { return PrecisionClass::Full; }

LogicalResult SoftmaxOp::buildAdjoint(OpBuilder &builder, ArrayRef<Value> resultGradients, ArrayRef<bool> active,
                                      SmallVectorImpl<Value> &gradients) {
  if (active[0])
    gradients[0] = SoftmaxGradOp::create(builder, getLoc(), getResult(), resultGradients[0]);
  return success();
}

LogicalResult SoftmaxGradOp::verify() {
  return checkRows([&] { return emitOpError(); }, typeOf(getOutput()));
}

OpFactors SoftmaxGradOp::getFactors() {
  OpFactors factors;
  ValueFactors dims = addRowDims(factors, typeOf(getOutput()));
  factors.factors.back().padding = 0;
  factors.operands = {dims, dims};
  factors.results = {dims};
  factors.unreducedTogether = {{1}};
  return factors;
}

OpCost SoftmaxGradOp::getCost() { return getTrafficCost(*this, 5); }
PrecisionClass SoftmaxGradOp::getPrecisionClass() { return PrecisionClass::Full; }

LogicalResult SoftmaxOp::buildSplit(OpBuilder &builder, int64_t, SmallVectorImpl<Value> &results) {
  RowMaker maker(builder, getLoc(), typeOf(getInput()));
  Value input = maker.widen(getInput());
  Value top = maker.reduceRows(ReductionKind::max, input);
  Value weights = maker.make<ExpOp>(maker.sub(input, maker.spreadRows(top)));
  results.assign({maker.narrow(maker.make<DivOp>(weights, maker.spreadRows(maker.sumRows(weights))))});
  return success();
}

LogicalResult SoftmaxGradOp::buildSplit(OpBuilder &builder, int64_t, SmallVectorImpl<Value> &results) {
  RowMaker maker(builder, getLoc(), typeOf(getOutput()));
  Value output = maker.widen(getOutput()), gradient = maker.widen(getGradient());
  Value sum = maker.sumRows(maker.mul(output, gradient));
  results.assign({maker.narrow(maker.mul(output, maker.sub(gradient, maker.spreadRows(sum))))});
  return success();
}

// layer_norm

OpFactors LayerNormOp::getFactors() {
  OpFactors factors;
  ValueFactors dims = addRowDims(factors, typeOf(getInput())), rows = dropLast(dims);
  factors.operands = {dims, {dims.back()}};
  if (getBias())
    factors.operands.push_back({dims.back()});
  factors.results = {dims, rows, rows};
  return factors;
}

OpCost LayerNormOp::getCost() {
  OpCost cost = getTrafficCost(*this);
  cost.flops = 8.0 * typeOf(getInput()).getNumElements();
  return cost;
}

PrecisionClass LayerNormOp::getPrecisionClass() { return PrecisionClass::Full; }

LogicalResult LayerNormOp::buildAdjoint(OpBuilder &builder, ArrayRef<Value> resultGradients, ArrayRef<bool> active,
                                        SmallVectorImpl<Value> &gradients) {
  if (resultGradients[1] || resultGradients[2])
    return emitOpError() << "has a gradient for its first result only, but mean or rstd lead to the loss too";
  auto grad =
      LayerNormGradOp::create(builder, getLoc(), resultGradients[0], getInput(), getScale(), getMean(), getRstd());
  for (unsigned index = 0; index < getNumOperands(); ++index)
    if (active[index])
      gradients[index] = grad.getResult(index);
  return success();
}

/// Computes the mean first, then the squares of the differences: the difference of mean square and squared mean would
/// cancel.
LogicalResult LayerNormOp::buildSplit(OpBuilder &builder, int64_t, SmallVectorImpl<Value> &results) {
  RowMaker maker(builder, getLoc(), typeOf(getInput()));
  Value input = maker.widen(getInput());
  Value mean = maker.averageRows(input);
  Value centred = maker.sub(input, maker.spreadRows(mean));
  Value rstd = maker.reciprocalRoot(centred, getEpsilon());
  Value result = maker.mul(maker.mul(centred, maker.spreadRows(rstd)), maker.spreadColumns(maker.widen(getScale())));
  if (getBias())
    result = maker.make<AddOp>(result, maker.spreadColumns(maker.widen(getBias())));
  results.assign({maker.narrow(result), mean, rstd});
  return success();
}

OpFactors LayerNormGradOp::getFactors() {
  OpFactors factors;
  // Rows are summed over for the gradients of scale and bias, which do not carry them.
  ValueFactors dims = addRowDims(factors, typeOf(getInput()), FactorKind::Reduction), rows = dropLast(dims);
  factors.operands = {dims, dims, {dims.back()}, rows, rows};
  factors.results = {dims, {dims.back()}, {dims.back()}};
  factors.unreducedTogether = {{0}};
  return factors;
}

OpCost LayerNormGradOp::getCost() {
  OpCost cost = getTrafficCost(*this);
  cost.flops = 14.0 * typeOf(getInput()).getNumElements();
  return cost;
}

PrecisionClass LayerNormGradOp::getPrecisionClass() { return PrecisionClass::Full; }

/// Computes, with x' = (x - mean) rstd and g = dy scale, dx = (g - mean(g) - x' mean(g x')) rstd.
LogicalResult LayerNormGradOp::buildSplit(OpBuilder &builder, int64_t, SmallVectorImpl<Value> &results) {
  RowMaker maker(builder, getLoc(), typeOf(getInput()));
  Value rstd = maker.spreadRows(getRstd());
  Value gradient = maker.widen(getGradient());
  Value normal = maker.mul(maker.sub(maker.widen(getInput()), maker.spreadRows(getMean())), rstd);
  Value scaled = maker.mul(gradient, maker.spreadColumns(maker.widen(getScale())));
  Value average = maker.spreadRows(maker.averageRows(scaled));
  Value slope = maker.spreadRows(maker.averageRows(maker.mul(scaled, normal)));
  results.assign({maker.narrow(maker.mul(maker.sub(maker.sub(scaled, average), maker.mul(normal, slope)), rstd)),
                  maker.sumColumns(maker.mul(gradient, normal)), maker.sumColumns(gradient)});
  return success();
}

// rms_norm

OpFactors RmsNormOp::getFactors() {
  OpFactors factors;
  ValueFactors dims = addRowDims(factors, typeOf(getInput()));
  factors.operands = {dims, {dims.back()}};
  factors.results = {dims, dropLast(dims)};
  return factors;
}

OpCost RmsNormOp::getCost() {
  OpCost cost = getTrafficCost(*this);
  cost.flops = 4.0 * typeOf(getInput()).getNumElements();
  return cost;
}

PrecisionClass RmsNormOp::getPrecisionClass() { return PrecisionClass::Full; }

LogicalResult RmsNormOp::buildAdjoint(OpBuilder &builder, ArrayRef<Value> resultGradients, ArrayRef<bool> active,
                                      SmallVectorImpl<Value> &gradients) {
  if (resultGradients[1])
    return emitOpError() << "has a gradient for its first result only, but rstd leads to the loss too";
  auto grad = RmsNormGradOp::create(builder, getLoc(), resultGradients[0], getInput(), getScale(), getRstd());
  for (unsigned index = 0; index < getNumOperands(); ++index)
    if (active[index])
      gradients[index] = grad.getResult(index);
  return success();
}

LogicalResult RmsNormOp::buildSplit(OpBuilder &builder, int64_t, SmallVectorImpl<Value> &results) {
  RowMaker maker(builder, getLoc(), typeOf(getInput()));
  Value input = maker.widen(getInput()), scale = maker.spreadColumns(maker.widen(getScale()));
  Value rstd = maker.reciprocalRoot(input, getEpsilon());
  results.assign({maker.narrow(maker.mul(maker.mul(input, maker.spreadRows(rstd)), scale)), rstd});
  return success();
}

OpFactors RmsNormGradOp::getFactors() {
  OpFactors factors;
  ValueFactors dims = addRowDims(factors, typeOf(getInput()), FactorKind::Reduction);
  factors.operands = {dims, dims, {dims.back()}, dropLast(dims)};
  factors.results = {dims, {dims.back()}};
  factors.unreducedTogether = {{0}};
  return factors;
}

OpCost RmsNormGradOp::getCost() {
  OpCost cost = getTrafficCost(*this);
  cost.flops = 9.0 * typeOf(getInput()).getNumElements();
  return cost;
}

PrecisionClass RmsNormGradOp::getPrecisionClass() { return PrecisionClass::Full; }

/// Computes, with x' = x rstd and g = dy scale, dx = (g - x' mean(g x')) rstd.
LogicalResult RmsNormGradOp::buildSplit(OpBuilder &builder, int64_t, SmallVectorImpl<Value> &results) {
  RowMaker maker(builder, getLoc(), typeOf(getInput()));
  Value rstd = maker.spreadRows(getRstd());
  Value gradient = maker.widen(getGradient());
  Value normal = maker.mul(maker.widen(getInput()), rstd);
  Value scaled = maker.mul(gradient, maker.spreadColumns(maker.widen(getScale())));
  Value slope = maker.spreadRows(maker.averageRows(maker.mul(scaled, normal)));
  results.assign({maker.narrow(maker.mul(maker.sub(scaled, maker.mul(normal, slope)), rstd)),
                  maker.sumColumns(maker.mul(gradient, normal))});
  return success();
}
