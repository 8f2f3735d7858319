// Scaled dot-product attention and its adjoint; rotary position embedding.
#include "OpSupport.h"

using namespace mlir;
using namespace windlass::train;

namespace {

/// The sizes of one attention.
struct Sizes {
  int64_t batch, heads, keyHeads, tokens, keys, depth, width;
};

FailureOr<Sizes> getSizes(Emit emit, Value queryValue, Value keyValue, Value valueValue, Value mask, double scale) {
  auto query = typeOf(queryValue), key = typeOf(keyValue), value = typeOf(valueValue);
  if (query.getRank() != 4 || key.getRank() != 4 || value.getRank() != 4)
    return emit() << "query " << query << ", key " << key << " and value " << value << " must have four dims";
  Sizes s{query.getDimSize(0), query.getDimSize(1), key.getDimSize(1),  query.getDimSize(2),
          key.getDimSize(2),   query.getDimSize(3), value.getDimSize(3)};
  Type element = query.getElementType();
  if (failed(checkType(emit, keyValue, makeType({s.batch, s.keyHeads, s.keys, s.depth}, element), "key")) ||
      failed(checkType(emit, valueValue, makeType({s.batch, s.keyHeads, s.keys, s.width}, element), "value")) ||
      (mask && failed(checkType(emit, mask, makeType({s.batch, s.heads, s.tokens, s.keys}, element), "mask"))))
    return failure();
  if (s.keyHeads == 0 || s.heads % s.keyHeads != 0)
    return emit() << s.heads << " query heads are not a multiple of " << s.keyHeads << " key heads";
  if (!std::isfinite(scale))
    return emit() << "scale must be a finite number";
  return s;
}

FailureOr<Types> inferAttention(AttentionOp::Adaptor op, Emit emit) {
  FailureOr<Sizes> sizes =
      getSizes(emit, op.getQuery(), op.getKey(), op.getValue(), op.getMask(), op.getScale().convertToDouble());
  if (failed(sizes))
    return failure();
  Type element = typeOf(op.getQuery()).getElementType();
  return Types{makeType({sizes->batch, sizes->heads, sizes->tokens, sizes->width}, element),
               makeType({sizes->batch, sizes->heads, sizes->tokens}, getWideType(element))};
}

FailureOr<Types> inferAttentionGrad(AttentionGradOp::Adaptor op, Emit emit) {
  FailureOr<Sizes> sizes =
      getSizes(emit, op.getQuery(), op.getKey(), op.getValue(), op.getMask(), op.getScale().convertToDouble());
  if (failed(sizes))
    return failure();
  Type element = typeOf(op.getQuery()).getElementType();
  auto result = makeType({sizes->batch, sizes->heads, sizes->tokens, sizes->width}, element);
  if (failed(checkType(emit, op.getGradient(), result, "gradient")) ||
      failed(checkType(emit, op.getOutput(), result, "output")) ||
      failed(checkType(emit, op.getLogSum(), makeType(result.getShape().drop_back(), getWideType(element)), "log_sum")))
    return failure();
  return Types{op.getQuery().getType(), op.getKey().getType(), op.getValue().getType()};
}

/// The dims of the values of an attention in terms of its factors.
struct Dims {
  ValueFactors query, key, value, mask, result, logSum;
};

Dims addAttentionDims(OpFactors &factors, RankedTensorType query, RankedTensorType key, RankedTensorType value,
                      bool causal, bool isGradient) {
  // In the gradient a factor that not all results carry is summed over for those that lack it.
  FactorKind summed = isGradient ? FactorKind::Reduction : FactorKind::Parallel;
  int64_t heads = query.getDimSize(1), keyHeads = key.getDimSize(1);
  DimFactors batch{factors.add("batch", query.getDimSize(0))};
  DimFactors keyHead{factors.add("heads", keyHeads)};
  DimFactors head = keyHead;
  if (heads != keyHeads)
    head.push_back(factors.add("group", heads / keyHeads, summed));
  // The causal border depends on where a part of the tokens begins.
  DimFactors token{factors.add("tokens", query.getDimSize(2), causal ? FactorKind::Replicated : summed)};
  // Where the row's logarithm is known, a gradient needs to know of other keys only which of its own a causal token
  // sees.
  DimFactors keyToken{
      factors.add("keys", key.getDimSize(2), isGradient && !causal ? FactorKind::Reduction : FactorKind::Inner)};
  // A split would make ranks sum whole scores before the softmax.
  DimFactors depth{factors.add("depth", query.getDimSize(3), FactorKind::Replicated)};
  DimFactors width{factors.add("width", value.getDimSize(3), summed)};
  return {{batch, head, token, depth},    {batch, keyHead, keyToken, depth}, {batch, keyHead, keyToken, width},
          {batch, head, token, keyToken}, {batch, head, token, width},       {batch, head, token}};
}

/// Makes the causal mask as a mask to add, [parts, tokens, keys / parts]: 0 where a token sees a key, -inf elsewhere.
Value makeCausalMask(const Maker &maker, RankedTensorType query, RankedTensorType key, int64_t parts) {
  int64_t tokens = query.getDimSize(2), keys = key.getDimSize(2);
  Type index = maker.builder.getI64Type();
  auto count = [&](int64_t size, int64_t start) {
    return maker.make<IotaOp>(makeType({size}, index), 0, APFloat(static_cast<double>(start)), APFloat(1.0));
  };
  Shape shape = {parts, tokens, keys / parts};
  Value own = maker.spread(maker.reshape(count(keys, 0), {parts, keys / parts}), {0, 2}, shape);
  Value last = maker.spread(count(tokens, keys - tokens), {1}, shape);
  auto type = makeType(shape, query.getElementType());
  return maker.make<SelectOp>(maker.compare(Predicate::less_equal, own, last), maker.splat(type, 0),
                              maker.splat(type, -std::numeric_limits<double>::infinity()));
}

/// Returns the FLOPs of one product of the two matrices of all heads, which a causal mask halves.
double getProductFlops(RankedTensorType query, RankedTensorType key, int64_t depth, bool causal) {
  double flops = 2.0 * query.getDimSize(0) * query.getDimSize(1) * query.getDimSize(2) * key.getDimSize(2) * depth;
  return causal ? flops / 2 : flops;
}

} // namespace

WINDLASS_INFERRED_OP(AttentionOp, inferAttention)
WINDLASS_INFERRED_OP(AttentionGradOp, inferAttentionGrad)

OpFactors AttentionOp::getFactors() {
  OpFactors factors;
  Dims dims = addAttentionDims(factors, typeOf(getQuery()), typeOf(getKey()), typeOf(getValue()), getCausal(), false);
  factors.operands = {dims.query, dims.key, dims.value};
  if (getMask())
    factors.operands.push_back(dims.mask);
  factors.results = {dims.result, dims.logSum};
  return factors;
}

OpCost AttentionOp::getCost() {
  OpCost cost = getTrafficCost(*this);
  auto query = typeOf(getQuery()), key = typeOf(getKey());
  cost.flops = getProductFlops(query, key, query.getDimSize(3), getCausal()) +
               getProductFlops(query, key, typeOf(getValue()).getDimSize(3), getCausal());
  return cost;
}

PrecisionClass AttentionOp::getPrecisionClass() { return PrecisionClass::Contraction; }

LogicalResult AttentionOp::buildAdjoint(OpBuilder &builder, ArrayRef<Value> resultGradients, ArrayRef<bool> active,
                                        SmallVectorImpl<Value> &gradients) {
  if (resultGradients[1])
    return emitOpError() << "has a gradient for its first result only, but log_sum leads to the loss too";
  if (getMask() && active[3])
    return emitOpError()
           << "has no gradient for its mask, which depends on a trainable parameter; freeze that parameter";
  auto grad = AttentionGradOp::create(builder, getLoc(), resultGradients[0], getQuery(), getKey(), getValue(),
                                      getMask(), getResult(), getLogSum(), getScaleAttr(), getCausalAttr());
  for (unsigned index = 0; index < 3; ++index)
    if (active[index])
      gradients[index] = grad.getResult(index);
  return success();
}

/// Attends to each part of the keys as to a sample of its own, and then weighs the parts by their share of the row's
/// sum of exponentials. (Milakov and Gimelshein: Online normalizer calculation for softmax, arXiv:1805.02867.)
LogicalResult AttentionOp::buildSplit(OpBuilder &builder, int64_t parts, SmallVectorImpl<Value> &results) {
  Maker maker{builder, getLoc()};
  auto query = typeOf(getQuery()), key = typeOf(getKey());
  int64_t batch = query.getDimSize(0), heads = query.getDimSize(1), keyHeads = key.getDimSize(1);
  int64_t tokens = query.getDimSize(2), keys = key.getDimSize(2), width = typeOf(getValue()).getDimSize(3);
  // Parts are the outer of two factors of the batch: the axes of both stand side by side then.
  auto divide = [&](Value value) {
    Shape shape = {batch, keyHeads, parts, keys / parts, typeOf(value).getDimSize(3)};
    Value moved = makeTranspose(builder, getLoc(), maker.reshape(value, shape), {2, 0, 1, 3, 4});
    return maker.reshape(moved, {parts * batch, keyHeads, keys / parts, shape.back()});
  };
  Value queries = maker.spread(getQuery(), {1, 2, 3, 4}, {parts, batch, heads, tokens, query.getDimSize(3)});
  queries = maker.reshape(queries, {parts * batch, heads, tokens, query.getDimSize(3)});
  Value mask;
  Shape scores = {parts * batch, heads, tokens, keys / parts};
  if (getMask()) {
    Value divided = maker.reshape(getMask(), {batch, heads, tokens, parts, keys / parts});
    mask = maker.reshape(makeTranspose(builder, getLoc(), divided, {3, 0, 1, 2, 4}), scores);
  }
  if (getCausal()) {
    Value causal =
        maker.spread(makeCausalMask(maker, query, key, parts), {0, 3, 4}, {parts, batch, heads, tokens, keys / parts});
    causal = maker.reshape(causal, scores);
    mask = mask ? maker.make<AddOp>(mask, causal) : causal;
  }
  auto attention = AttentionOp::create(builder, getLoc(), queries, divide(getKey()), divide(getValue()), mask,
                                       getScaleAttr(), /*causal=*/UnitAttr());

  JoinedLogs logs(maker, maker.reshape(attention.getLogSum(), {parts, batch, heads, tokens}), 0);
  Shape outputs = {parts, batch, heads, tokens, width};
  Value weighed = maker.make<MulOp>(maker.reshape(maker.widen(attention.getResult()), outputs),
                                    maker.spread(logs.weights, {0, 1, 2, 3}, outputs));
  // The part with the greatest logarithm has weight 1, so that only the sum of a row without keys, which is 0, is
  // changed.
  Value divisor = maker.make<MaxOp>(logs.sum, maker.splat(logs.sum.getType(), 1));
  Value result = maker.make<DivOp>(maker.reduce(ReductionKind::sum, weighed, {0}),
                                   maker.spread(divisor, {0, 1, 2}, {batch, heads, tokens, width}));
  results.assign({maker.cast(result, query.getElementType()), logs.log});
  return success();
}

OpFactors AttentionGradOp::getFactors() {
  OpFactors factors;
  Dims dims = addAttentionDims(factors, typeOf(getQuery()), typeOf(getKey()), typeOf(getValue()), getCausal(), true);
  factors.operands = {dims.result, dims.query, dims.key, dims.value};
  if (getMask())
    factors.operands.push_back(dims.mask);
  factors.operands.push_back(dims.result);
  factors.operands.push_back(dims.logSum);
  factors.results = {dims.query, dims.key, dims.value};
  factors.unreducedTogether = {{0}};
  return factors;
}

OpCost AttentionGradOp::getCost() {
  OpCost cost = getTrafficCost(*this);
  auto query = typeOf(getQuery()), key = typeOf(getKey());
  // The scores, their gradient, and the products for query, key and value.
  cost.flops = 3 * getProductFlops(query, key, query.getDimSize(3), getCausal()) +
               2 * getProductFlops(query, key, typeOf(getValue()).getDimSize(3), getCausal());
  return cost;
}

PrecisionClass AttentionGradOp::getPrecisionClass() { return PrecisionClass::Contraction; }

/// Replaces the causal mask by an added one, whose parts are those of the keys.
LogicalResult AttentionGradOp::buildSplit(OpBuilder &builder, int64_t, SmallVectorImpl<Value> &results) {
  Maker maker{builder, getLoc()};
  auto query = typeOf(getQuery()), key = typeOf(getKey());
  int64_t tokens = query.getDimSize(2), keys = key.getDimSize(2);
  Value mask = maker.reshape(makeCausalMask(maker, query, key, 1), {tokens, keys});
  mask = maker.spread(mask, {2, 3}, {query.getDimSize(0), query.getDimSize(1), tokens, keys});
  if (getMask())
    mask = maker.make<AddOp>(getMask(), mask);
  auto grad = AttentionGradOp::create(builder, getLoc(), getGradient(), getQuery(), getKey(), getValue(), mask,
                                      getOutput(), getLogSum(), getScaleAttr(), /*causal=*/UnitAttr());
  results.assign(grad->result_begin(), grad->result_end());
  return success();
}

// rotary

LogicalResult RotaryOp::verify() {
  auto input = typeOf(getInput());
  if (input.getRank() < 2 || input.getShape().back() % 2 != 0)
    return emitOpError() << "turns the halves of rows of an even size per token, but its operand is " << input;
  RankedTensorType table = makeType(input.getShape().take_back(2), input.getElementType());
  auto emit = [&] { return emitOpError(); };
  return success(succeeded(checkType(emit, getCosine(), table, "cosine")) &&
                 succeeded(checkType(emit, getSine(), table, "sine")));
}

OpFactors RotaryOp::getFactors() {
  OpFactors factors;
  ValueFactors dims = addDims(factors, typeOf(getInput()));
  // Both halves of a row meet in each result.
  factors.factors.back().kind = FactorKind::Replicated;
  ValueFactors table(dims.end() - 2, dims.end());
  factors.operands = {dims, table, table};
  factors.results = {dims};
  factors.unreducedTogether = {{0}};
  return factors;
}

OpCost RotaryOp::getCost() { return getTrafficCost(*this, 3); }
PrecisionClass RotaryOp::getPrecisionClass() { return PrecisionClass::Any; }

LogicalResult RotaryOp::buildAdjoint(OpBuilder &builder, ArrayRef<Value> resultGradients, ArrayRef<bool> active,
                                     SmallVectorImpl<Value> &gradients) {
  if (active[1] || active[2])
    return emitOpError() << "has no gradient for its tables, but a trainable parameter leads to them";
  if (active[0])
    gradients[0] = RotaryOp::create(builder, getLoc(), getInput().getType(), resultGradients[0], getCosine(), getSine(),
                                    !getTransposed());
  return success();
}
