// Constants and operators that move elements.
#include "OpSupport.h"

#include <numeric>

using namespace mlir;
using namespace windlass::train;

namespace {

// Type inference with the checks of the verifiers.

FailureOr<Types> inferTranspose(TransposeOp::Adaptor op, Emit emit) {
  auto type = typeOf(op.getInput());
  ArrayRef<int64_t> permutation = op.getPermutation();
  if (static_cast<int64_t>(permutation.size()) != type.getRank())
    return emit() << "permutation " << toText(permutation) << " has " << permutation.size()
                  << " entries for an operand of rank " << type.getRank();
  if (failed(checkDistinctDims(emit, permutation, type.getRank(), "permutation")))
    return failure();
  Shape shape;
  for (int64_t dim : permutation)
    shape.push_back(type.getDimSize(dim));
  return Types{makeType(shape, type.getElementType())};
}

FailureOr<Types> inferSlice(SliceOp::Adaptor op, Emit emit) {
  auto type = typeOf(op.getInput());
  int64_t rank = type.getRank();
  if (static_cast<int64_t>(op.getStarts().size()) != rank || static_cast<int64_t>(op.getSizes().size()) != rank)
    return emit() << "starts " << toText(op.getStarts()) << " and sizes " << toText(op.getSizes())
                  << " must have one entry per dim of " << type;
  for (int64_t dim = 0; dim < rank; ++dim) {
    int64_t start = op.getStarts()[dim], size = op.getSizes()[dim], bound = type.getDimSize(dim);
    if (start < 0 || size < 1 || start > bound || size > bound - start)
      return emit() << "takes " << size << " elements from " << start << " along dim " << dim << ", which has "
                    << bound;
  }
  return Types{makeType(op.getSizes(), type.getElementType())};
}

FailureOr<Types> inferPad(PadOp::Adaptor op, Emit emit) {
  auto type = typeOf(op.getInput());
  int64_t rank = type.getRank();
  if (static_cast<int64_t>(op.getLow().size()) != rank || static_cast<int64_t>(op.getHigh().size()) != rank)
    return emit() << "low " << toText(op.getLow()) << " and high " << toText(op.getHigh())
                  << " must have one entry per dim of " << type;
  Shape shape(type.getShape());
  for (int64_t dim = 0; dim < rank; ++dim) {
    int64_t low = op.getLow()[dim], high = op.getHigh()[dim];
    if (low < 0 || high < 0 || low > INT32_MAX || high > INT32_MAX)
      return emit() << "pads dim " << dim << " by " << low << " and " << high
                    << "; paddings are at least 0 (use train.slice to cut) and below 2^31";
    shape[dim] += low + high;
  }
  return Types{makeType(shape, type.getElementType())};
}

FailureOr<Types> inferConcat(ConcatOp::Adaptor op, Emit emit) {
  if (op.getInputs().empty())
    return emit() << "joins nothing; give it at least one operand";
  auto first = typeOf(op.getInputs().front());
  int64_t axis = op.getAxis();
  if (failed(checkAxis(emit, axis, first.getRank())))
    return failure();
  Shape shape(first.getShape());
  for (Value input : op.getInputs().drop_front()) {
    auto type = typeOf(input);
    bool fits = type.getRank() == first.getRank() && type.getElementType() == first.getElementType();
    for (int64_t dim = 0; fits && dim < first.getRank(); ++dim)
      fits = dim == axis || type.getDimSize(dim) == first.getDimSize(dim);
    if (!fits)
      return emit() << "cannot join " << type << " to " << first << " along axis " << axis
                    << "; all other dims and the element type must agree";
    shape[axis] += type.getDimSize(axis);
  }
  return Types{makeType(shape, first.getElementType())};
}

FailureOr<Types> inferSplit(SplitOp::Adaptor op, Emit emit) {
  auto type = typeOf(op.getInput());
  int64_t axis = op.getAxis();
  if (failed(checkAxis(emit, axis, type.getRank())))
    return failure();
  int64_t bound = type.getDimSize(axis), left = bound;
  Types results;
  for (int64_t size : op.getSizes()) {
    if (size < 1 || size > left)
      return emit() << "sizes " << toText(op.getSizes()) << " do not add up to the " << bound << " elements of axis "
                    << axis;
    left -= size;
    Shape shape(type.getShape());
    shape[axis] = size;
    results.push_back(makeType(shape, type.getElementType()));
  }
  if (left != 0)
    return emit() << "sizes " << toText(op.getSizes()) << " do not add up to the " << bound << " elements of axis "
                  << axis;
  return results;
}

// Factors.

/// Maps dims: those outside `isMoved` are parallel and common to `from` and `to`; the others have a whole factor on
/// each side.
std::pair<ValueFactors, ValueFactors> mapDims(OpFactors &factors, RankedTensorType from, RankedTensorType to,
                                              function_ref<bool(int64_t)> isMoved, StringRef fromPrefix = "from",
                                              StringRef toPrefix = "to") {
  ValueFactors source, target;
  for (int64_t dim = 0; dim < from.getRank(); ++dim) {
    if (isMoved(dim)) {
      source.push_back({factors.add((fromPrefix + Twine(dim)).str(), from.getDimSize(dim), FactorKind::Replicated)});
      target.push_back({factors.add((toPrefix + Twine(dim)).str(), to.getDimSize(dim), FactorKind::Replicated)});
      continue;
    }
    DimFactors factor{factors.add(("d" + Twine(dim)).str(), from.getDimSize(dim))};
    source.push_back(factor);
    target.push_back(factor);
  }
  return {source, target};
}

/// Splits the dims of both shapes into common factors, major to minor. Both sides are consumed from the left: while the
/// numbers of remaining elements on both sides are equal, a common divisor of the two current dims is the major factor
/// of both. Where the two rests have no divisor in common, whole dims up to the next common border stay unsplit.
OpFactors getReshapeFactors(RankedTensorType from, RankedTensorType to) {
  OpFactors factors;
  ValueFactors source(from.getRank()), target(to.getRank());
  auto name = [&] { return "d" + std::to_string(factors.factors.size()); };
  int64_t i = 0, j = 0, left = 1, right = 1;
  auto advance = [](RankedTensorType type, int64_t &dim, int64_t &rest) {
    while (rest == 1 && dim < type.getRank())
      rest = type.getDimSize(dim++);
    return rest != 1;
  };
  while (advance(from, i, left) && advance(to, j, right)) {
    int64_t common = std::gcd(left, right);
    if (common > 1) {
      unsigned factor = factors.add(name(), common);
      source[i - 1].push_back(factor);
      target[j - 1].push_back(factor);
      left /= common;
      right /= common;
      if (left == 1 || right == 1)
        continue;
    }
    // The rests are coprime: they and everything up to the next common border stay whole.
    int64_t leftProduct = left, rightProduct = right;
    source[i - 1].push_back(factors.add(name(), left, FactorKind::Replicated));
    target[j - 1].push_back(factors.add(name(), right, FactorKind::Replicated));
    while (leftProduct != rightProduct) {
      bool takeLeft = leftProduct < rightProduct;
      int64_t &dim = takeLeft ? i : j;
      RankedTensorType type = takeLeft ? from : to;
      if (dim == type.getRank())
        return factors; // Element counts differ; the verifier says so.
      int64_t size = type.getDimSize(dim++);
      (takeLeft ? leftProduct : rightProduct) *= size;
      if (size != 1)
        (takeLeft ? source : target)[dim - 1].push_back(factors.add(name(), size, FactorKind::Replicated));
    }
    left = right = 1;
  }
  factors.operands = {source};
  factors.results = {target};
  return factors;
}

/// Returns the factors of dim `axis` of each of the parts that stand side by side in the dim whose factor is `axis`.
/// Equal parts share a factor that may be split, and the whole dim is their number times that factor; unequal ones stay
/// whole.
SmallVector<DimFactors> addParts(OpFactors &factors, int64_t axis, TypeRange parts, ValueFactors &whole) {
  SmallVector<DimFactors> result;
  auto sizeOf = [&](Type type) { return cast<RankedTensorType>(type).getDimSize(axis); };
  if (llvm::all_equal(llvm::map_range(parts, sizeOf))) {
    factors.factors[axis].size = parts.size();
    unsigned inner = factors.add("part", sizeOf(parts.front()));
    whole[axis].push_back(inner);
    result.assign(parts.size(), {inner});
    return result;
  }
  for (auto [index, type] : llvm::enumerate(parts))
    result.push_back({factors.add("part" + std::to_string(index), sizeOf(type), FactorKind::Replicated)});
  return result;
}

/// Lets every operand be unreduced: moves of elements are linear in each of them.
void allowUnreduced(OpFactors &factors) {
  factors.unreducedTogether.emplace_back();
  for (unsigned index = 0; index < factors.operands.size(); ++index)
    factors.unreducedTogether[0].push_back(index);
}

} // namespace

WINDLASS_INFERRED_OP(TransposeOp, inferTranspose)
WINDLASS_INFERRED_OP(SliceOp, inferSlice)
WINDLASS_INFERRED_OP(PadOp, inferPad)
WINDLASS_INFERRED_OP(ConcatOp, inferConcat)
WINDLASS_INFERRED_OP(SplitOp, inferSplit)

#define WINDLASS_MOVE_OP(Op)                                                                                           \
  OpCost Op::getCost() { return getTrafficCost(*this); }                                                               \
  PrecisionClass Op::getPrecisionClass() { return getClass(*this, PrecisionClass::Any); }

WINDLASS_MOVE_OP(ConstantOp)
WINDLASS_MOVE_OP(IotaOp)
WINDLASS_MOVE_OP(BroadcastOp)
WINDLASS_MOVE_OP(TransposeOp)
WINDLASS_MOVE_OP(SliceOp)
WINDLASS_MOVE_OP(PadOp)
WINDLASS_MOVE_OP(ConcatOp)
WINDLASS_MOVE_OP(SplitOp)

// A reshape of a contiguous value is a view.
OpCost ReshapeOp::getCost() { return {}; }
PrecisionClass ReshapeOp::getPrecisionClass() { return getClass(*this, PrecisionClass::Any); }

// constant

OpFactors ConstantOp::getFactors() {
  OpFactors factors;
  // A splat has the same elements in every part.
  factors.results = {
      addDims(factors, typeOf(getResult()), "d", getValue().isSplat() ? FactorKind::Parallel : FactorKind::Replicated)};
  return factors;
}

// iota

LogicalResult IotaOp::verify() {
  auto type = typeOf(getResult());
  if (type.getElementType().isInteger(1))
    return emitOpError() << "counts in " << type << "; the element type must be a number";
  return checkAxis([&] { return emitOpError(); }, getDim(), type.getRank(), "dim");
}

OpFactors IotaOp::getFactors() {
  OpFactors factors;
  factors.results = {addDims(factors, typeOf(getResult()))};
  // A part of the counted dim would begin at another number.
  factors.factors[getDim()].kind = FactorKind::Replicated;
  return factors;
}

// broadcast

LogicalResult BroadcastOp::verify() {
  auto from = typeOf(getInput()), to = typeOf(getResult());
  if (from.getElementType() != to.getElementType())
    return emitOpError() << "turns " << from << " into " << to << "; the element types must agree (use train.cast)";
  if (static_cast<int64_t>(getDims().size()) != from.getRank())
    return emitOpError() << "dims " << toText(getDims()) << " must have one entry per dim of the operand " << from;
  int64_t last = -1;
  for (auto [index, dim] : llvm::enumerate(getDims())) {
    if (dim <= last)
      return emitOpError() << "dims " << toText(getDims()) << " must increase from 0 on";
    last = dim;
    if (failed(checkAxis([&] { return emitOpError() << "result "; }, dim, to.getRank(), "dim")))
      return failure();
    if (from.getDimSize(index) != to.getDimSize(dim))
      return emitOpError() << "puts dim " << index << " of size " << from.getDimSize(index) << " at dim " << dim
                           << " of size " << to.getDimSize(dim) << "; reshape dims of size 1 away before";
  }
  return success();
}

OpFactors BroadcastOp::getFactors() {
  OpFactors factors;
  ValueFactors target = addDims(factors, typeOf(getResult())), source;
  for (int64_t dim : getDims())
    source.push_back(target[dim]);
  factors.operands = {source};
  factors.results = {target};
  allowUnreduced(factors);
  return factors;
}

LogicalResult BroadcastOp::buildAdjoint(OpBuilder &builder, ArrayRef<Value> resultGradients, ArrayRef<bool> active,
                                        SmallVectorImpl<Value> &gradients) {
  SmallVector<int64_t> added;
  for (int64_t dim = 0; dim < typeOf(getResult()).getRank(); ++dim)
    if (!llvm::is_contained(getDims(), dim))
      added.push_back(dim);
  if (active[0])
    gradients[0] = added.empty() ? resultGradients[0]
                                 : ReduceOp::create(builder, getLoc(), ReductionKind::sum, resultGradients[0],
                                                    builder.getDenseI64ArrayAttr(added))
                                       .getResult();
  return success();
}

// reshape

LogicalResult ReshapeOp::verify() {
  auto from = typeOf(getInput()), to = typeOf(getResult());
  if (from.getElementType() != to.getElementType())
    return emitOpError() << "turns " << from << " into " << to << "; the element types must agree (use train.cast)";
  if (from.getNumElements() != to.getNumElements())
    return emitOpError() << "turns " << from << " of " << from.getNumElements() << " elements into " << to << " of "
                         << to.getNumElements();
  return success();
}

OpFactors ReshapeOp::getFactors() {
  OpFactors factors = getReshapeFactors(typeOf(getInput()), typeOf(getResult()));
  allowUnreduced(factors);
  return factors;
}

LogicalResult ReshapeOp::buildAdjoint(OpBuilder &builder, ArrayRef<Value> resultGradients, ArrayRef<bool> active,
                                      SmallVectorImpl<Value> &gradients) {
  if (active[0])
    gradients[0] = ReshapeOp::create(builder, getLoc(), getInput().getType(), resultGradients[0]);
  return success();
}

// transpose

OpFactors TransposeOp::getFactors() {
  OpFactors factors;
  ValueFactors source = addDims(factors, typeOf(getInput())), target;
  for (int64_t dim : getPermutation())
    target.push_back(source[dim]);
  factors.operands = {source};
  factors.results = {target};
  allowUnreduced(factors);
  return factors;
}

LogicalResult TransposeOp::buildAdjoint(OpBuilder &builder, ArrayRef<Value> resultGradients, ArrayRef<bool> active,
                                        SmallVectorImpl<Value> &gradients) {
  SmallVector<int64_t> inverse(getPermutation().size());
  for (auto [index, dim] : llvm::enumerate(getPermutation()))
    inverse[dim] = index;
  if (active[0])
    gradients[0] = makeTranspose(builder, getLoc(), resultGradients[0], inverse);
  return success();
}

// slice

OpFactors SliceOp::getFactors() {
  OpFactors factors;
  auto from = typeOf(getInput()), to = typeOf(getResult());
  auto [source, target] =
      mapDims(factors, from, to, [&](int64_t dim) { return from.getDimSize(dim) != to.getDimSize(dim); });
  factors.operands = {source};
  factors.results = {target};
  allowUnreduced(factors);
  return factors;
}

LogicalResult SliceOp::buildAdjoint(OpBuilder &builder, ArrayRef<Value> resultGradients, ArrayRef<bool> active,
                                    SmallVectorImpl<Value> &gradients) {
  auto type = typeOf(getInput());
  SmallVector<int64_t> high;
  for (int64_t dim = 0; dim < type.getRank(); ++dim)
    high.push_back(type.getDimSize(dim) - getStarts()[dim] - getSizes()[dim]);
  if (active[0])
    gradients[0] = PadOp::create(builder, getLoc(), resultGradients[0], getStarts(), high, APFloat(0.0));
  return success();
}

// pad

OpFactors PadOp::getFactors() {
  OpFactors factors;
  auto [source, target] = mapDims(factors, typeOf(getInput()), typeOf(getResult()),
                                  [&](int64_t dim) { return getLow()[dim] != 0 || getHigh()[dim] != 0; });
  factors.operands = {source};
  factors.results = {target};
  if (getValue().isZero())
    allowUnreduced(factors);
  return factors;
}

LogicalResult PadOp::buildAdjoint(OpBuilder &builder, ArrayRef<Value> resultGradients, ArrayRef<bool> active,
                                  SmallVectorImpl<Value> &gradients) {
  if (active[0])
    gradients[0] =
        SliceOp::create(builder, getLoc(), resultGradients[0], getLow(), typeOf(getInput()).getShape()).getResult();
  return success();
}

// concat

OpFactors ConcatOp::getFactors() {
  OpFactors factors;
  ValueFactors target = addDims(factors, typeOf(getResult()));
  int64_t axis = getAxis();
  factors.factors[axis].kind = FactorKind::Replicated;
  SmallVector<DimFactors> parts = addParts(factors, axis, getInputs().getTypes(), target);
  for (DimFactors &part : parts) {
    ValueFactors source = target;
    source[axis] = part;
    factors.operands.push_back(source);
  }
  factors.results = {target};
  allowUnreduced(factors);
  return factors;
}

LogicalResult ConcatOp::buildAdjoint(OpBuilder &builder, ArrayRef<Value> resultGradients, ArrayRef<bool> active,
                                     SmallVectorImpl<Value> &gradients) {
  auto type = typeOf(getResult());
  SmallVector<int64_t> starts(type.getRank(), 0);
  for (auto [index, input] : llvm::enumerate(getInputs())) {
    if (active[index])
      gradients[index] =
          SliceOp::create(builder, getLoc(), resultGradients[0], starts, typeOf(input).getShape()).getResult();
    starts[getAxis()] += typeOf(input).getDimSize(getAxis());
  }
  return success();
}

// split

OpFactors SplitOp::getFactors() {
  OpFactors factors;
  ValueFactors source = addDims(factors, typeOf(getInput()));
  int64_t axis = getAxis();
  factors.factors[axis].kind = FactorKind::Replicated;
  for (DimFactors &part : addParts(factors, axis, getResults().getTypes(), source)) {
    ValueFactors target = source;
    target[axis] = part;
    factors.results.push_back(target);
  }
  factors.operands = {source};
  allowUnreduced(factors);
  return factors;
}

LogicalResult SplitOp::buildAdjoint(OpBuilder &builder, ArrayRef<Value> resultGradients, ArrayRef<bool> active,
                                    SmallVectorImpl<Value> &gradients) {
  if (!active[0])
    return success();
  SmallVector<Value> parts;
  for (auto [gradient, result] : llvm::zip(resultGradients, getResults()))
    parts.push_back(gradient ? gradient : makeSplat(builder, getLoc(), result.getType(), 0));
  gradients[0] = ConcatOp::create(builder, getLoc(), parts, builder.getI64IntegerAttr(getAxis()));
  return success();
}
