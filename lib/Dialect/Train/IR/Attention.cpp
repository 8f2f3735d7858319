// Scaled dot-product attention and its adjoint; rotary position embedding.
#include "OpSupport.h"

using namespace mlir;
using namespace windlass::train;

namespace {

/// Sizes of one attention.
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
               makeType({sizes->batch, sizes->heads, sizes->tokens}, element)};
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
      failed(checkType(emit, op.getLogSum(), makeType(result.getShape().drop_back(), element), "log_sum")))
    return failure();
  return Types{op.getQuery().getType(), op.getKey().getType(), op.getValue().getType()};
}

/// Dims of the values of an attention in terms of its factors.
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
  DimFactors keyToken{factors.add("keys", key.getDimSize(2), FactorKind::Inner)};
  DimFactors depth{factors.add("depth", query.getDimSize(3), FactorKind::Inner)};
  DimFactors width{factors.add("width", value.getDimSize(3), summed)};
  return {{batch, head, token, depth},    {batch, keyHead, keyToken, depth}, {batch, keyHead, keyToken, width},
          {batch, head, token, keyToken}, {batch, head, token, width},       {batch, head, token}};
}

/// FLOPs of one product of the two matrices of all heads; a causal mask leaves half.
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
  // Scores again, their gradient, and the products for query, key and value.
  cost.flops = 3 * getProductFlops(query, key, query.getDimSize(3), getCausal()) +
               2 * getProductFlops(query, key, typeOf(getValue()).getDimSize(3), getCausal());
  return cost;
}

PrecisionClass AttentionGradOp::getPrecisionClass() { return PrecisionClass::Contraction; }

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
