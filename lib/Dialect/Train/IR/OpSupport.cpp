#include "OpSupport.h"

#include "llvm/ADT/SmallBitVector.h"

using namespace mlir;

namespace windlass::train {

std::string toText(ArrayRef<int64_t> values) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  stream << "[";
  llvm::interleaveComma(values, stream);
  stream << "]";
  return text;
}

LogicalResult checkAxis(Emit emit, int64_t axis, int64_t rank, StringRef name) {
  if (axis < 0 || axis >= rank)
    return emit() << name << " " << axis << " is not a dim of an operand of rank " << rank;
  return success();
}

LogicalResult checkDistinctDims(Emit emit, ArrayRef<int64_t> dims, int64_t rank, StringRef name) {
  llvm::SmallBitVector seen(rank);
  for (int64_t dim : dims) {
    if (failed(checkAxis(emit, dim, rank, name)))
      return failure();
    if (seen.test(dim))
      return emit() << name << " " << toText(dims) << " names dim " << dim << " twice";
    seen.set(dim);
  }
  return success();
}

LogicalResult checkType(Emit emit, Value value, RankedTensorType expected, StringRef name) {
  if (value.getType() != expected)
    return emit() << name << " has type " << value.getType() << ", but the other operands need " << expected;
  return success();
}

LogicalResult checkTableParts(Emit emit, int64_t rows, Value first, std::optional<uint64_t> allRows) {
  if (rows < 1)
    return emit() << "has a table of " << rows << " rows; rows must be positive";
  if (bool(first) != allRows.has_value())
    return emit() << "needs both where parts of the table begin and how many rows there are in all, or neither";
  if (!first)
    return success();
  auto type = typeOf(first);
  if (type.getRank() != 1 || !type.getElementType().isInteger(64))
    return emit() << "first rows " << type << " must be a list of 64-bit integers";
  int64_t parts = type.getDimSize(0), all = static_cast<int64_t>(*allRows);
  if (parts < 1 || rows % parts != 0 || rows > all)
    return emit() << "has " << rows << " rows of " << all << ", which cannot be " << parts << " equal parts of them";
  return success();
}

ValueFactors addDims(OpFactors &factors, RankedTensorType type, StringRef prefix, FactorKind kind) {
  ValueFactors dims;
  for (auto [index, size] : llvm::enumerate(type.getShape()))
    dims.push_back({factors.add((prefix + Twine(index)).str(), size, kind)});
  return dims;
}

OpFactors getElementwiseFactors(Operation *op) {
  OpFactors factors;
  ValueFactors dims;
  if (auto type = dyn_cast<RankedTensorType>(op->getResult(0).getType()))
    dims = addDims(factors, type);
  factors.operands.assign(op->getNumOperands(), dims);
  factors.results.assign(op->getNumResults(), dims);
  return factors;
}

double getBytes(Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  Type element = tensor ? tensor.getElementType() : type;
  double bytes = element.isIntOrFloat() ? (element.getIntOrFloatBitWidth() + 7) / 8 : 0;
  return tensor ? bytes * static_cast<double>(tensor.getNumElements()) : bytes;
}

OpCost getTrafficCost(Operation *op, double flopsPerElement) {
  OpCost cost;
  for (Type type : op->getOperandTypes())
    cost.bytes += getBytes(type);
  for (Type type : op->getResultTypes()) {
    cost.bytes += getBytes(type);
    auto tensor = dyn_cast<RankedTensorType>(type);
    cost.flops += flopsPerElement * (tensor ? static_cast<double>(tensor.getNumElements()) : 1);
  }
  return cost;
}

PrecisionClass getClass(Operation *op, PrecisionClass preferred) {
  auto isFloat = [](Type type) { return isa<FloatType>(getElementTypeOrSelf(type)); };
  bool any = llvm::any_of(op->getOperandTypes(), isFloat) || llvm::any_of(op->getResultTypes(), isFloat);
  return any ? preferred : PrecisionClass::Index;
}

Value makeSplat(OpBuilder &builder, Location loc, Type type, double value) {
  auto tensor = cast<RankedTensorType>(type);
  Type element = tensor.getElementType();
  Attribute attr;
  if (auto floatType = dyn_cast<FloatType>(element))
    attr = builder.getFloatAttr(floatType, value);
  else
    attr = builder.getIntegerAttr(element, static_cast<int64_t>(value));
  return ConstantOp::create(builder, loc, type, DenseElementsAttr::get(tensor, attr));
}

JoinedLogs::JoinedLogs(const Maker &maker, Value logs, int64_t dim) {
  auto type = typeOf(logs);
  Shape others = countDims(type.getRank());
  others.erase(others.begin() + dim);
  // The difference of two infinities would be NaN.
  constexpr double lowest = -std::numeric_limits<float>::max();
  Value top = maker.reduce(ReductionKind::max, logs, {dim});
  top = maker.make<MaxOp>(top, maker.splat(top.getType(), lowest));
  weights = maker.make<ExpOp>(maker.make<SubOp>(logs, maker.spread(top, others, type.getShape())));
  sum = maker.reduce(ReductionKind::sum, weights, {dim});
  log = maker.make<AddOp>(top, maker.make<LogOp>(sum));
}

Value makeTranspose(OpBuilder &builder, Location loc, Value value, ArrayRef<int64_t> permutation) {
  for (auto [index, dim] : llvm::enumerate(permutation))
    if (static_cast<int64_t>(index) != dim)
      return TransposeOp::create(builder, loc, value, builder.getDenseI64ArrayAttr(permutation));
  return value;
}

} // namespace windlass::train
