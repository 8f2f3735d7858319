// The canonicalizer's simplifications. They never change a result's bits, except that splat constants are computed
// here. Operators that are changed in place keep their id.
#include "OpSupport.h"

using namespace mlir;
using namespace windlass::train;

namespace {

SplatElementsAttr getSplat(Attribute attr) { return llvm::dyn_cast_or_null<SplatElementsAttr>(attr); }

/// Whether all elements are `number`; false for an attribute that is no splat.
bool isSplatOf(Attribute attr, double number) {
  SplatElementsAttr splat = getSplat(attr);
  if (!splat)
    return false;
  if (isa<FloatType>(splat.getElementType())) {
    APFloat value = splat.getSplatValue<APFloat>();
    // x + (-0.0) is x, x + 0.0 is not where x is -0.0; the sign of zero is of no interest here.
    return value.convertToDouble() == number;
  }
  return splat.getElementType().isInteger(64) && splat.getSplatValue<APInt>().getSExtValue() == number;
}

/// Returns the splat of the number that `floats` or `integers` makes of the two elements, or null.
template <class Floats, class Integers>
OpFoldResult foldSplats(Attribute lhs, Attribute rhs, Floats floats, Integers integers) {
  SplatElementsAttr a = getSplat(lhs), b = getSplat(rhs);
  if (!a || !b)
    return {};
  if (isa<FloatType>(a.getElementType())) {
    APFloat value = a.getSplatValue<APFloat>();
    floats(value, b.getSplatValue<APFloat>());
    return DenseElementsAttr::get(a.getType(), value);
  }
  if (a.getElementType().isInteger(1))
    return {};
  return DenseElementsAttr::get(a.getType(), APInt(integers(a.getSplatValue<APInt>(), b.getSplatValue<APInt>())));
}

constexpr auto kRounding = APFloat::rmNearestTiesToEven;

bool isIdentity(ArrayRef<int64_t> permutation) {
  for (auto [index, dim] : llvm::enumerate(permutation))
    if (static_cast<int64_t>(index) != dim)
      return false;
  return true;
}

/// Returns a splat in the result's shape, or null.
OpFoldResult reshapeSplat(Attribute attr, Type type) {
  SplatElementsAttr splat = getSplat(attr);
  return splat ? OpFoldResult(splat.resizeSplat(cast<ShapedType>(type))) : OpFoldResult();
}

} // namespace

OpFoldResult ConstantOp::fold(FoldAdaptor) { return getValue(); }

// Arithmetic.

OpFoldResult AddOp::fold(FoldAdaptor adaptor) {
  if (isSplatOf(adaptor.getRhs(), 0))
    return getLhs();
  if (isSplatOf(adaptor.getLhs(), 0))
    return getRhs();
  return foldSplats(
      adaptor.getLhs(), adaptor.getRhs(), [](APFloat &a, const APFloat &b) { a.add(b, kRounding); },
      [](const APInt &a, const APInt &b) { return a + b; });
}

OpFoldResult SubOp::fold(FoldAdaptor adaptor) {
  if (isSplatOf(adaptor.getRhs(), 0))
    return getLhs();
  return foldSplats(
      adaptor.getLhs(), adaptor.getRhs(), [](APFloat &a, const APFloat &b) { a.subtract(b, kRounding); },
      [](const APInt &a, const APInt &b) { return a - b; });
}

OpFoldResult MulOp::fold(FoldAdaptor adaptor) {
  if (isSplatOf(adaptor.getRhs(), 1))
    return getLhs();
  if (isSplatOf(adaptor.getLhs(), 1))
    return getRhs();
  return foldSplats(
      adaptor.getLhs(), adaptor.getRhs(), [](APFloat &a, const APFloat &b) { a.multiply(b, kRounding); },
      [](const APInt &a, const APInt &b) { return a * b; });
}

OpFoldResult DivOp::fold(FoldAdaptor adaptor) {
  if (isSplatOf(adaptor.getRhs(), 1))
    return getLhs();
  return foldSplats(
      adaptor.getLhs(), adaptor.getRhs(), [](APFloat &a, const APFloat &b) { a.divide(b, kRounding); },
      [](const APInt &a, const APInt &b) {
        bool overflows = b.isAllOnes() && a.isMinSignedValue();
        return b.isZero() ? b : overflows ? a : a.sdiv(b);
      });
}

OpFoldResult NegOp::fold(FoldAdaptor) {
  if (auto inner = getInput().getDefiningOp<NegOp>())
    return inner.getInput();
  return {};
}

OpFoldResult AccumulateOp::fold(FoldAdaptor) {
  return getInputs().size() == 1 ? OpFoldResult(getInputs().front()) : OpFoldResult();
}

OpFoldResult CastOp::fold(FoldAdaptor) {
  return getInput().getType() == getType() ? OpFoldResult(getInput()) : OpFoldResult();
}

OpFoldResult SelectOp::fold(FoldAdaptor adaptor) {
  if (getLhs() == getRhs())
    return getLhs();
  if (SplatElementsAttr condition = getSplat(adaptor.getCondition()))
    return condition.getSplatValue<APInt>().isZero() ? getRhs() : getLhs();
  return {};
}

OpFoldResult ReduceOp::fold(FoldAdaptor) { return getDims().empty() ? OpFoldResult(getInput()) : OpFoldResult(); }

// Moves.

OpFoldResult BroadcastOp::fold(FoldAdaptor adaptor) {
  if (getInput().getType() == getType())
    return getInput();
  return reshapeSplat(adaptor.getInput(), getType());
}

OpFoldResult ReshapeOp::fold(FoldAdaptor adaptor) {
  if (getInput().getType() == getType())
    return getInput();
  if (auto inner = getInput().getDefiningOp<ReshapeOp>()) {
    getInputMutable().assign(inner.getInput());
    return getResult();
  }
  return reshapeSplat(adaptor.getInput(), getType());
}

OpFoldResult TransposeOp::fold(FoldAdaptor adaptor) {
  if (isIdentity(getPermutation()))
    return getInput();
  if (auto inner = getInput().getDefiningOp<TransposeOp>()) {
    SmallVector<int64_t> permutation;
    for (int64_t dim : getPermutation())
      permutation.push_back(inner.getPermutation()[dim]);
    setPermutation(permutation);
    getInputMutable().assign(inner.getInput());
    return getResult();
  }
  return reshapeSplat(adaptor.getInput(), getType());
}

OpFoldResult SliceOp::fold(FoldAdaptor adaptor) {
  if (getInput().getType() == getType())
    return getInput();
  return reshapeSplat(adaptor.getInput(), getType());
}

OpFoldResult PadOp::fold(FoldAdaptor) {
  return getInput().getType() == getType() ? OpFoldResult(getInput()) : OpFoldResult();
}

OpFoldResult ConcatOp::fold(FoldAdaptor) {
  return getInputs().size() == 1 ? OpFoldResult(getInputs().front()) : OpFoldResult();
}

// Contractions.

/// Takes the operand of a transpose instead of its result, where the free dims keep their order (they are the result's
/// dims). `batch` and `contract` are changed to the dims of the new operand.
static bool absorbTranspose(OpOperand &operand, ArrayRef<int64_t> free, SmallVectorImpl<int64_t> &batch,
                            SmallVectorImpl<int64_t> &contract) {
  auto transpose = operand.get().getDefiningOp<TransposeOp>();
  if (!transpose)
    return false;
  ArrayRef<int64_t> permutation = transpose.getPermutation();
  auto move = [&](int64_t dim) { return permutation[dim]; };
  if (!llvm::is_sorted(llvm::map_range(free, move)))
    return false;
  for (auto *dims : {&batch, &contract})
    for (int64_t &dim : *dims)
      dim = move(dim);
  operand.set(transpose.getInput());
  return true;
}

OpFoldResult MatmulOp::fold(FoldAdaptor) {
  SmallVector<int64_t> lhsBatch(getLhsBatch()), lhsContract(getLhsContract());
  SmallVector<int64_t> rhsBatch(getRhsBatch()), rhsContract(getRhsContract());
  bool isChanged = absorbTranspose(getLhsMutable(), getLhsFreeDims(), lhsBatch, lhsContract);
  isChanged |= absorbTranspose(getRhsMutable(), getRhsFreeDims(), rhsBatch, rhsContract);
  if (!isChanged)
    return {};
  setLhsBatch(lhsBatch);
  setLhsContract(lhsContract);
  setRhsBatch(rhsBatch);
  setRhsContract(rhsContract);
  return getResult();
}
