//===- LegalizeRankings.cpp - the greatest and least elements of rows -----===//

#include "Legalizer.h"

#include "llvm/ADT/STLExtras.h"

#include <cmath>
#include <numeric>

using namespace mlir;
using namespace windlass;

void Legalizer::registerRankings() {
  handle("ArgMax", &Legalizer::legalizeArgExtreme);
  handle("ArgMin", &Legalizer::legalizeArgExtreme);
  handle("Hardmax", &Legalizer::legalizeHardmax);
  handle("TopK", &Legalizer::legalizeTopK);
}

/// Whether places along `axis` can be counted in the elements of x, of which f32 holds integers up to 2^24.
static bool canCountPlaces(const Entry &x, int64_t axis) {
  return x.getElementType().isF32() && x.getShape()[axis] < (int64_t(1) << 24) && x.type.getNumElements() > 0;
}

/// Returns integers that f32 holds, since they were booleans or f32 before, such as places in another ranking, as f32,
/// and everything else as it is.
static Entry widenIntegers(PartialEvaluator &eval, const Entry &x) {
  if (!x.value || !isa<IntegerType>(x.getElementType()))
    return x;
  Operation *producer = x.value.getDefiningOp();
  while (isa_and_nonnull<train::ReshapeOp, train::TransposeOp, train::SliceOp>(producer))
    producer = producer->getOperand(0).getDefiningOp();
  auto cast = dyn_cast_or_null<train::CastOp>(producer);
  Type before = cast ? getElementTypeOrSelf(cast.getInput()) : Type();
  bool isHeld = before && (before.isInteger(1) || before.isF32());
  return isHeld ? eval.cast(x, Float32Type::get(before.getContext())) : x;
}

Entry Legalizer::countUp(int64_t count, Type elementType) {
  return Entry::of(makeKnown(RankedTensorType::get({count}, elementType), [&](KnownStorage &out) {
    std::iota(out.reals.begin(), out.reals.end(), 0.0);
    std::iota(out.integers.begin(), out.integers.end(), 0);
  }));
}

Entry Legalizer::placeOf(const Entry &isWanted, Type elementType, bool isLast) {
  int64_t last = isWanted.getRank() - 1, width = isWanted.getShape()[last];
  Entry none = eval.scalar(isLast ? -1 : double(width), elementType);
  return reduceKept(isLast ? ReduceKind::max : ReduceKind::min,
                    eval.select(isWanted, countUp(width, elementType), none), {last});
}

Entry Legalizer::placeOfGreatest(const Entry &rows, bool isLast) {
  Entry top = reduceKept(ReduceKind::max, rows, {rows.getRank() - 1});
  // The maximum of a row with a NaN is NaN, which equals nothing.
  Entry isGreatest =
      eval.binary(BinaryKind::bitOr, eval.compare(CompareKind::equal, rows, top), eval.unary(UnaryKind::isNan, rows));
  return isGreatest.isTensor() ? placeOf(isGreatest, rows.getElementType(), isLast) : isGreatest;
}

LogicalResult Legalizer::legalizeArgExtreme(NodeContext &node) {
  if (failed(expectTensors(node, 1)))
    return failure();
  const Entry x = widenIntegers(eval, node.inputs[0]);
  FailureOr<int64_t> axis = normalizeAxis(node, node.getInt("axis", 0), x.getRank());
  if (failed(axis))
    return failure();
  Shape shape(x.getShape());
  if (node.getInt("keepdims", 1) != 0)
    shape[*axis] = 1;
  else
    shape.erase(shape.begin() + *axis);
  if (!canCountPlaces(x, *axis))
    return setShapeOnly(node, 0, shape, builder.getI64Type(), "is not over f32, or over too many");
  Entry ranking = node.op.getOpType() == "ArgMax" ? x : eval.unary(UnaryKind::neg, x);
  bool isLast = node.getInt("select_last_index", 0) != 0;
  Entry places = alongLast(ranking, *axis, [&](const Entry &rows) { return placeOfGreatest(rows, isLast); });
  Entry result = eval.cast(places, builder.getI64Type());
  return give(node, eval.reshape(result, shape));
}

LogicalResult Legalizer::legalizeHardmax(NodeContext &node) {
  FailureOr<int64_t> axis = readFloatAxis(node, 1);
  if (failed(axis))
    return failure();
  const Entry &x = node.inputs[0];
  if (!canCountPlaces(x, *axis))
    return setShapeOnly(node, 0, x.getShape(), x.getElementType(), "is not over f32, or over too many");
  return give(node, alongLast(x, *axis, [&](const Entry &rows) {
                Type element = rows.getElementType();
                Entry isFirst = eval.compare(CompareKind::equal, countUp(rows.getShape().back(), element),
                                             placeOfGreatest(rows, /*isLast=*/false));
                return eval.select(isFirst, eval.scalar(1, element), eval.scalar(0, element));
              }));
}

std::pair<Entry, Entry> Legalizer::takeGreatest(const Entry &x, const Entry &ranking, int64_t count) {
  int64_t last = x.getRank() - 1, width = x.getShape()[last];
  Type element = x.getElementType();
  Entry places = countUp(width, element), zero = eval.scalar(0, element);
  auto reduceRows = [&](ReduceKind kind, const Entry &rows) { return reduceKept(kind, rows, {last}); };
  // Each round takes the first of the greatest that earlier rounds have left. Values come through a select, so that
  // gradients reach the elements that were taken.
  std::vector<Entry> values, indices;
  Entry isLeft;
  for (int64_t round = 0; round < count; ++round) {
    Entry rest = round == 0 ? ranking : eval.select(isLeft, ranking, eval.scalar(-INFINITY, element));
    Entry isGreatest = eval.compare(CompareKind::equal, rest, reduceRows(ReduceKind::max, rest));
    if (round > 0)
      isGreatest = eval.binary(BinaryKind::bitAnd, isGreatest, isLeft);
    if (!isGreatest.isTensor())
      return {};
    Entry place = placeOf(isGreatest, element, /*isLast=*/false);
    Entry isTaken = eval.compare(CompareKind::equal, place, places);
    values.push_back(reduceRows(ReduceKind::sum, eval.select(isTaken, x, zero)));
    indices.push_back(place);
    if (!values.back().isTensor())
      return {};
    Entry isOther = eval.unary(UnaryKind::logicalNot, isTaken);
    isLeft = round == 0 ? isOther : eval.binary(BinaryKind::bitAnd, isLeft, isOther);
  }
  return {eval.concat(values, last), eval.cast(eval.concat(indices, last), builder.getI64Type())};
}

LogicalResult Legalizer::legalizeTopK(NodeContext &node) {
  constexpr int64_t kMostRounds = 64;
  if (failed(expectTensors(node, 2)))
    return failure();
  FailureOr<Shape> list = readIntegers(node, 1, "a count");
  if (failed(list))
    return failure();
  const Entry x = widenIntegers(eval, node.inputs[0]);
  Type element = node.inputs[0].getElementType();
  FailureOr<int64_t> axis = normalizeAxis(node, node.getInt("axis", -1), x.getRank());
  if (failed(axis))
    return failure();
  Shape shape(x.getShape());
  if (list->size() != 1 || (*list)[0] < 0 || (*list)[0] > shape[*axis])
    return invalid(node, "takes a count that is not in [0, " + llvm::Twine(shape[*axis]) + "]");
  int64_t count = (*list)[0];
  shape[*axis] = count;
  bool isInReach = canCountPlaces(x, *axis);
  if (!isInReach || count < 1 || count > kMostRounds) {
    for (size_t i = 0; i < node.outputs.size(); ++i)
      if (failed(setShapeOnly(node, i, shape, i == 0 ? element : builder.getI64Type(),
                              isInReach ? "takes no element, or more than 64" : "is not over f32, or over too many")))
        return failure();
    return success();
  }
  Shape order = llvm::to_vector(llvm::seq<int64_t>(0, x.getRank()));
  std::swap(order[*axis], order.back());
  bool isLast = *axis == x.getRank() - 1;
  Entry rows = isLast ? x : eval.transpose(x, order);
  Entry ranking = node.getInt("largest", 1) != 0 ? rows : eval.unary(UnaryKind::neg, rows);
  auto [values, indices] = takeGreatest(rows, ranking, count);
  auto giveBack = [&](size_t index, const Entry &result) {
    if (index >= node.outputs.size())
      return success();
    return give(node, index, isLast || !result.isTensor() ? result : eval.transpose(result, order));
  };
  return failed(giveBack(0, eval.cast(values, element))) ? failure() : giveBack(1, indices);
}
