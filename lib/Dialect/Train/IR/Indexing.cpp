// Embedding, gather, gather of elements and their adjoints.
#include "OpSupport.h"

using namespace mlir;
using namespace windlass::train;

namespace {

FailureOr<Types> inferEmbedding(EmbeddingOp::Adaptor op, Emit emit) {
  auto table = typeOf(op.getTable());
  if (table.getRank() != 2)
    return emit() << "reads rows of a table of two dims, but got " << table;
  if (failed(checkTableParts(emit, table.getDimSize(0), op.getFirst(), op.getAllRows())))
    return failure();
  Shape shape(typeOf(op.getIds()).getShape());
  shape.push_back(table.getDimSize(1));
  return Types{makeType(shape, table.getElementType())};
}

FailureOr<Types> inferEmbeddingGrad(EmbeddingGradOp::Adaptor op, Emit emit) {
  auto ids = typeOf(op.getIds()), gradient = typeOf(op.getGradient());
  if (gradient.getRank() != ids.getRank() + 1 || gradient.getShape().drop_back() != ids.getShape())
    return emit() << "gradient " << gradient << " must have the dims of ids " << ids << " and one more";
  int64_t rows = op.getRows();
  if (failed(checkTableParts(emit, rows, op.getFirst(), op.getAllRows())))
    return failure();
  return Types{makeType({rows, gradient.getShape().back()}, getWideType(gradient.getElementType()))};
}

FailureOr<Types> inferGather(GatherOp::Adaptor op, Emit emit) {
  auto input = typeOf(op.getInput()), indices = typeOf(op.getIndices());
  int64_t axis = op.getAxis();
  if (failed(checkAxis(emit, axis, input.getRank())))
    return failure();
  Shape shape(input.getShape().take_front(axis));
  llvm::append_range(shape, indices.getShape());
  llvm::append_range(shape, input.getShape().drop_front(axis + 1));
  return Types{makeType(shape, input.getElementType())};
}

FailureOr<Types> inferScatterAdd(ScatterAddOp::Adaptor op, Emit emit) {
  auto input = typeOf(op.getInput()), indices = typeOf(op.getIndices());
  int64_t axis = op.getAxis(), rank = indices.getRank();
  if (axis < 0 || axis > input.getRank() - rank || input.getShape().slice(axis, rank) != indices.getShape())
    return emit() << "dims from " << axis << " on of " << input << " must be those of indices " << indices;
  int64_t size = op.getSize();
  if (size < 1)
    return emit() << "makes an axis of " << size << " elements; size must be positive";
  Shape shape(input.getShape().take_front(axis));
  shape.push_back(size);
  llvm::append_range(shape, input.getShape().drop_front(axis + rank));
  return Types{makeType(shape, input.getElementType())};
}

FailureOr<Types> inferGatherElements(GatherElementsOp::Adaptor op, Emit emit) {
  auto input = typeOf(op.getInput()), indices = typeOf(op.getIndices());
  int64_t axis = op.getAxis();
  if (failed(checkAxis(emit, axis, input.getRank())))
    return failure();
  Shape shape(input.getShape());
  if (indices.getRank() == input.getRank())
    shape[axis] = indices.getDimSize(axis);
  if (indices.getShape() != ArrayRef<int64_t>(shape))
    return emit() << "indices " << indices << " must have the dims of " << input << " but for axis " << axis;
  return Types{makeType(shape, input.getElementType())};
}

FailureOr<Types> inferScatterElementsAdd(ScatterElementsAddOp::Adaptor op, Emit emit) {
  auto input = typeOf(op.getInput()), indices = typeOf(op.getIndices());
  int64_t axis = op.getAxis(), size = op.getSize();
  if (failed(checkAxis(emit, axis, input.getRank())))
    return failure();
  if (indices.getShape() != input.getShape())
    return emit() << "indices " << indices << " must have the dims of " << input;
  if (size < 1)
    return emit() << "makes an axis of " << size << " elements; size must be positive";
  Shape shape(input.getShape());
  shape[axis] = size;
  return Types{makeType(shape, input.getElementType())};
}

/// The dims of `whole` (the tensor with the axis), of the indices, and of the tensor whose axis the indices replace.
struct GatherDims {
  ValueFactors whole, indices, parts;
};

GatherDims addGatherDims(OpFactors &factors, RankedTensorType whole, RankedTensorType indices, int64_t axis,
                         FactorKind indexKind) {
  GatherDims dims;
  dims.whole = addDims(factors, whole);
  // A split would need ranks that know which of the indices are theirs.
  factors.factors[axis].kind = FactorKind::Replicated;
  factors.factors[axis].name = "axis";
  dims.indices = addDims(factors, indices, "i", indexKind);
  dims.parts.assign(dims.whole.begin(), dims.whole.begin() + axis);
  llvm::append_range(dims.parts, dims.indices);
  dims.parts.append(dims.whole.begin() + axis + 1, dims.whole.end());
  return dims;
}

/// Adds the dims of a table's rows and ids. Parts whose first rows are known are split like anything else; without
/// these, a rank would not know which rows are its own.
GatherDims addTableDims(OpFactors &factors, RankedTensorType table, RankedTensorType ids, Value first,
                        FactorKind rowKind, FactorKind idKind) {
  GatherDims dims = addGatherDims(factors, table, ids, 0, idKind);
  Factor &rows = factors.factors[0];
  rows.name = "rows";
  if (!first) {
    rows.kind = rowKind;
    rows.isLookedUp = true;
    return dims;
  }
  int64_t parts = typeOf(first).getDimSize(0);
  rows.size /= parts;
  dims.whole[0] = {factors.add("parts", parts, rowKind), 0};
  return dims;
}

/// The dims of a tensor with the axis, and of indices and elements along it.
struct ElementDims {
  ValueFactors whole, parts;
};

ElementDims addElementDims(OpFactors &factors, RankedTensorType whole, int64_t count, int64_t axis,
                           FactorKind indexKind) {
  ElementDims dims;
  dims.whole = addDims(factors, whole);
  factors.factors[axis].kind = FactorKind::Replicated;
  factors.factors[axis].name = "axis";
  dims.parts = dims.whole;
  dims.parts[axis] = {factors.add("i", count, indexKind)};
  return dims;
}

} // namespace

WINDLASS_INFERRED_OP(EmbeddingOp, inferEmbedding)
WINDLASS_INFERRED_OP(EmbeddingGradOp, inferEmbeddingGrad)
WINDLASS_INFERRED_OP(GatherOp, inferGather)
WINDLASS_INFERRED_OP(ScatterAddOp, inferScatterAdd)
WINDLASS_INFERRED_OP(GatherElementsOp, inferGatherElements)
WINDLASS_INFERRED_OP(ScatterElementsAddOp, inferScatterElementsAdd)

// embedding

OpFactors EmbeddingOp::getFactors() {
  OpFactors factors;
  GatherDims dims = addTableDims(factors, typeOf(getTable()), typeOf(getIds()), getFirst(), FactorKind::Reduction,
                                 FactorKind::Parallel);
  factors.operands = {dims.whole, dims.indices};
  if (getFirst())
    factors.operands.push_back({{dims.whole[0].front()}});
  factors.results = {dims.parts};
  factors.unreducedTogether = {{0}};
  return factors;
}

/// Looks up each part by itself: it gives the rows that it has and zeros for the others, so that the sum of the parts
/// is the whole. (Shoeybi et al.: Megatron-LM, arXiv:1909.08053, section 3.)
LogicalResult EmbeddingOp::buildSplit(OpBuilder &builder, int64_t parts, SmallVectorImpl<Value> &results) {
  Maker maker{builder, getLoc()};
  int64_t rows = typeOf(getTable()).getDimSize(0);
  Value first = maker.firstOfParts(rows, parts);
  results.assign({maker.make<EmbeddingOp>(getTable(), getIds(), first, builder.getI64IntegerAttr(rows))});
  return success();
}

OpCost EmbeddingOp::getCost() {
  // Only the chosen rows of the table are read.
  return {0, getBytes(getIds().getType()) + 2 * getBytes(getResult().getType())};
}

PrecisionClass EmbeddingOp::getPrecisionClass() { return PrecisionClass::Any; }

LogicalResult EmbeddingOp::buildAdjoint(OpBuilder &builder, ArrayRef<Value> resultGradients, ArrayRef<bool> active,
                                        SmallVectorImpl<Value> &gradients) {
  if (active[0])
    gradients[0] = EmbeddingGradOp::create(builder, getLoc(), getIds(), resultGradients[0], Value(),
                                           builder.getI64IntegerAttr(typeOf(getTable()).getDimSize(0)), IntegerAttr());
  return success();
}

OpFactors EmbeddingGradOp::getFactors() {
  OpFactors factors;
  GatherDims dims = addTableDims(factors, typeOf(getResult()), typeOf(getIds()), getFirst(), FactorKind::Parallel,
                                 FactorKind::Reduction);
  factors.operands = {dims.indices, dims.parts};
  if (getFirst())
    factors.operands.push_back({{dims.whole[0].front()}});
  factors.results = {dims.whole};
  factors.unreducedTogether = {{1}};
  return factors;
}

LogicalResult EmbeddingGradOp::buildSplit(OpBuilder &builder, int64_t parts, SmallVectorImpl<Value> &results) {
  Maker maker{builder, getLoc()};
  Value first = maker.firstOfParts(getRows(), parts);
  results.assign({maker.make<EmbeddingGradOp>(getIds(), getGradient(), first, getRowsAttr(),
                                              builder.getI64IntegerAttr(getRows()))});
  return success();
}

OpCost EmbeddingGradOp::getCost() {
  OpCost cost = getTrafficCost(*this);
  cost.flops = typeOf(getGradient()).getNumElements();
  return cost;
}

// Many rows may meet in one: the sum is kept in f32.
PrecisionClass EmbeddingGradOp::getPrecisionClass() { return PrecisionClass::Full; }

// gather

OpFactors GatherOp::getFactors() {
  OpFactors factors;
  GatherDims dims = addGatherDims(factors, typeOf(getInput()), typeOf(getIndices()), getAxis(), FactorKind::Parallel);
  factors.operands = {dims.whole, dims.indices};
  factors.results = {dims.parts};
  factors.unreducedTogether = {{0}};
  return factors;
}

OpCost GatherOp::getCost() { return {0, getBytes(getIndices().getType()) + 2 * getBytes(getResult().getType())}; }
PrecisionClass GatherOp::getPrecisionClass() { return getClass(*this, PrecisionClass::Any); }

LogicalResult GatherOp::buildAdjoint(OpBuilder &builder, ArrayRef<Value> resultGradients, ArrayRef<bool> active,
                                     SmallVectorImpl<Value> &gradients) {
  if (active[0])
    gradients[0] =
        ScatterAddOp::create(builder, getLoc(), getIndices(), resultGradients[0], builder.getI64IntegerAttr(getAxis()),
                             builder.getI64IntegerAttr(typeOf(getInput()).getDimSize(getAxis())));
  return success();
}

OpFactors ScatterAddOp::getFactors() {
  OpFactors factors;
  GatherDims dims = addGatherDims(factors, typeOf(getResult()), typeOf(getIndices()), getAxis(), FactorKind::Reduction);
  factors.operands = {dims.indices, dims.parts};
  factors.results = {dims.whole};
  factors.unreducedTogether = {{1}};
  return factors;
}

OpCost ScatterAddOp::getCost() {
  OpCost cost = getTrafficCost(*this);
  cost.flops = typeOf(getInput()).getNumElements();
  return cost;
}

PrecisionClass ScatterAddOp::getPrecisionClass() { return PrecisionClass::Full; }

LogicalResult ScatterAddOp::buildAdjoint(OpBuilder &builder, ArrayRef<Value> resultGradients, ArrayRef<bool> active,
                                         SmallVectorImpl<Value> &gradients) {
  if (active[1])
    gradients[1] = GatherOp::create(builder, getLoc(), resultGradients[0], getIndices(), getAxisAttr());
  return success();
}

// gather_elements

OpFactors GatherElementsOp::getFactors() {
  OpFactors factors;
  int64_t axis = getAxis();
  ElementDims dims =
      addElementDims(factors, typeOf(getInput()), typeOf(getIndices()).getDimSize(axis), axis, FactorKind::Parallel);
  factors.operands = {dims.whole, dims.parts};
  factors.results = {dims.parts};
  factors.unreducedTogether = {{0}};
  return factors;
}

OpCost GatherElementsOp::getCost() {
  return {0, getBytes(getIndices().getType()) + 2 * getBytes(getResult().getType())};
}
PrecisionClass GatherElementsOp::getPrecisionClass() { return getClass(*this, PrecisionClass::Any); }

LogicalResult GatherElementsOp::buildAdjoint(OpBuilder &builder, ArrayRef<Value> resultGradients, ArrayRef<bool> active,
                                             SmallVectorImpl<Value> &gradients) {
  if (active[0])
    gradients[0] = ScatterElementsAddOp::create(builder, getLoc(), getIndices(), resultGradients[0],
                                                builder.getI64IntegerAttr(getAxis()),
                                                builder.getI64IntegerAttr(typeOf(getInput()).getDimSize(getAxis())));
  return success();
}

OpFactors ScatterElementsAddOp::getFactors() {
  OpFactors factors;
  int64_t axis = getAxis();
  ElementDims dims =
      addElementDims(factors, typeOf(getResult()), typeOf(getIndices()).getDimSize(axis), axis, FactorKind::Reduction);
  factors.operands = {dims.parts, dims.parts};
  factors.results = {dims.whole};
  factors.unreducedTogether = {{1}};
  return factors;
}

OpCost ScatterElementsAddOp::getCost() {
  OpCost cost = getTrafficCost(*this);
  cost.flops = typeOf(getInput()).getNumElements();
  return cost;
}

PrecisionClass ScatterElementsAddOp::getPrecisionClass() { return PrecisionClass::Full; }

LogicalResult ScatterElementsAddOp::buildAdjoint(OpBuilder &builder, ArrayRef<Value> resultGradients,
                                                 ArrayRef<bool> active, SmallVectorImpl<Value> &gradients) {
  if (active[1])
    gradients[1] = GatherElementsOp::create(builder, getLoc(), resultGradients[0], getIndices(), getAxisAttr());
  return success();
}
