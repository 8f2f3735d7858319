//===- LegalizeIndexing.cpp - reads at places given by integers -----------===//

#include "Legalizer.h"

#include "llvm/ADT/STLExtras.h"

#include <cmath>

using namespace mlir;
using namespace windlass;

void Legalizer::registerIndexing() {
  handle("Gather", &Legalizer::legalizeGather);
  handle("GatherND", &Legalizer::legalizeGatherNd);
  handle("GatherElements", &Legalizer::legalizeGatherElements);
  handle("Trilu", &Legalizer::legalizeTrilu);
  handle("TopK", &Legalizer::legalizeTopK);
}

LogicalResult Legalizer::legalizeGather(NodeContext &node) {
  if (failed(expectTensors(node, 2)))
    return failure();
  const Entry &x = node.inputs[0];
  Entry indices = node.inputs[1];
  FailureOr<int64_t> axis = normalizeAxis(node, node.getInt("axis", 0), x.getRank());
  if (failed(axis))
    return failure();
  if (indices.isFloat() || indices.isBoolean())
    return invalid(node, "has indices that are not integers");
  Shape shape(x.getShape().take_front(*axis));
  llvm::append_range(shape, indices.getShape());
  llvm::append_range(shape, x.getShape().drop_front(*axis + 1));
  if (failed(checkCount(node, shape)))
    return failure();
  int64_t extent = x.getShape()[*axis];
  if (indices.known) {
    bool isNegative = false;
    for (int64_t index : indices.known->storage->integers) {
      if (index < -extent || index >= extent)
        return invalid(node, "reads index " + llvm::Twine(index) + " of a dimension of size " + llvm::Twine(extent));
      isNegative |= index < 0;
    }
    if (isNegative)
      indices = Entry::of(makeKnown(indices.type, [&](KnownStorage &out) {
        for (auto [to, from] : llvm::zip_equal(out.integers, indices.known->storage->integers))
          to = from < 0 ? from + extent : from;
      }));
  }
  return give(node, eval.gather(x, indices, *axis));
}

LogicalResult Legalizer::legalizeGatherNd(NodeContext &node) {
  if (failed(expectTensors(node, 2)))
    return failure();
  const Entry &x = node.inputs[0], &indices = node.inputs[1];
  if (node.getInt("batch_dims", 0) != 0)
    return unsupported("has batch_dims");
  if (indices.getRank() == 0 || indices.isFloat() || indices.isBoolean() || indices.getShape().back() > x.getRank() ||
      indices.getShape().back() < 1)
    return invalid(node, "has indices that do not fit its tensor");
  // Each row of indices becomes one position in the leading dims, which are merged.
  int64_t depth = indices.getShape().back(), rows = indices.type.getNumElements() / depth;
  Shape outer(indices.getShape().drop_back()), inner(x.getShape().drop_front(depth)), merged;
  if (!indices.known && depth == 1) {
    // These are rows of the first dim, such as those of the experts that a router has chosen.
    Shape gathered(outer);
    llvm::append_range(gathered, inner);
    if (failed(checkCount(node, gathered)))
      return failure();
    return give(node, eval.gather(x, eval.reshape(indices, outer), 0));
  }
  if (!indices.known) {
    llvm::append_range(outer, inner);
    return setShapeOnly(node, 0, outer, x.getElementType(), "has indices into several dims that are not constants");
  }
  auto strides = getStrides(x.getShape().take_front(depth));
  int64_t extent = 1;
  for (int64_t dim : x.getShape().take_front(depth))
    extent *= dim;
  merged.push_back(extent);
  llvm::append_range(merged, inner);
  Shape whole(outer);
  llvm::append_range(whole, inner);
  if (failed(checkCount(node, whole)))
    return failure();
  if (!eval.mayEvaluate(rows))
    return unsupported("has too many indices");
  bool isInside = true;
  Known flat = makeKnown(RankedTensorType::get(outer, builder.getI64Type()), [&](KnownStorage &out) {
    for (int64_t row = 0; row < rows; ++row)
      for (int64_t i = 0; i < depth; ++i) {
        int64_t index = indices.known->storage->integers[row * depth + i], dim = x.getShape()[i];
        index = index < 0 ? index + dim : index;
        isInside &= index >= 0 && index < dim;
        out.integers[row] += index * strides[i];
      }
  });
  if (!isInside)
    return invalid(node, "reads outside of its tensor");
  Entry data = eval.reshape(x, merged);
  return give(node, data.isTensor() ? eval.gather(data, Entry::of(flat), 0) : data);
}

/// Gathers elements at places that are known in training only.
LogicalResult Legalizer::gatherLiveElements(NodeContext &node, const Entry &x, const Entry &indices, int64_t axis) {
  // Other dims of the indices may be smaller: elements beyond them are not read.
  Shape starts(x.getRank(), 0), sizes(indices.getShape()), steps(x.getRank(), 1);
  sizes[axis] = x.getShape()[axis];
  Entry read = sizes == Shape(x.getShape()) ? x : eval.slice(x, starts, sizes, steps);
  Entry places = eval.cast(indices, builder.getI64Type());
  Value data = read.isTensor() ? eval.materialize(read) : Value();
  Value at = places.isTensor() ? eval.materialize(places) : Value();
  if (!data || !at)
    return unsupported(eval.takeReason());
  return give(node, Entry::of(train::GatherElementsOp::create(builder, eval.getLocation(), data, at,
                                                              builder.getI64IntegerAttr(axis))
                                  .getResult()));
}

LogicalResult Legalizer::legalizeGatherElements(NodeContext &node) {
  if (failed(expectTensors(node, 2)))
    return failure();
  const Entry &x = node.inputs[0], &indices = node.inputs[1];
  FailureOr<int64_t> axis = normalizeAxis(node, node.getInt("axis", 0), x.getRank());
  if (failed(axis))
    return failure();
  if (indices.getRank() != x.getRank() || indices.isFloat() || indices.isBoolean())
    return invalid(node, "has indices that do not fit its tensor");
  for (auto [i, dims] : llvm::enumerate(llvm::zip_equal(indices.getShape(), x.getShape())))
    if (static_cast<int64_t>(i) != *axis && std::get<0>(dims) > std::get<1>(dims))
      return invalid(node, "has indices that do not fit its tensor");
  if (!indices.known)
    return gatherLiveElements(node, x, indices, *axis);
  if (!eval.mayEvaluate(indices.known->getSize()))
    return unsupported("has too many indices");
  // One gather over all elements serves all dims.
  auto strides = getStrides(x.getShape()), own = getStrides(indices.getShape());
  bool isInside = true;
  Known flat = makeKnown(indices.type, [&](KnownStorage &out) {
    for (int64_t i = 0, e = indices.known->getSize(); i < e; ++i) {
      int64_t at = 0;
      for (int64_t dim = 0; dim < x.getRank(); ++dim) {
        int64_t index = i / own[dim] % indices.getShape()[dim];
        if (dim == *axis) {
          index = indices.known->storage->integers[i];
          index = index < 0 ? index + x.getShape()[dim] : index;
          isInside &= index >= 0 && index < x.getShape()[dim];
        }
        at += index * strides[dim];
      }
      out.integers[i] = at;
    }
  });
  if (!isInside)
    return invalid(node, "reads outside of its tensor");
  Entry data = eval.reshape(x, {x.type.getNumElements()});
  return give(node, data.isTensor() ? eval.gather(data, Entry::of(flat), 0) : data);
}

LogicalResult Legalizer::legalizeTrilu(NodeContext &node) {
  if (failed(expectTensors(node, 1)))
    return failure();
  const Entry &x = node.inputs[0];
  if (x.getRank() < 2)
    return invalid(node, "needs a matrix");
  int64_t offset = 0;
  if (node.has(1)) {
    FailureOr<Shape> list = readIntegers(node, 1, "a diagonal");
    if (failed(list))
      return failure();
    if (list->size() != 1)
      return invalid(node, "has a diagonal that is not one integer");
    offset = std::min(std::max((*list)[0], -(int64_t(1) << 40)), int64_t(1) << 40);
  }
  bool isUpper = node.getInt("upper", 1) != 0;
  int64_t rows = x.getShape()[x.getRank() - 2], columns = x.getShape().back();
  if (!eval.mayEvaluate(rows * columns))
    return unsupported("is too large to be evaluated");
  Known mask = makeKnown(RankedTensorType::get({rows, columns}, builder.getI1Type()), [&](KnownStorage &out) {
    for (int64_t i = 0; i < rows; ++i)
      for (int64_t j = 0; j < columns; ++j)
        out.booleans[i * columns + j] = isUpper ? j >= i + offset : j <= i + offset;
  });
  return give(node, eval.select(Entry::of(mask), x, eval.scalar(0, x.getElementType())));
}

std::pair<Entry, Entry> Legalizer::takeGreatest(const Entry &x, const Entry &ranking, int64_t count) {
  int64_t last = x.getRank() - 1, width = x.getShape()[last];
  Type element = x.getElementType();
  Known numbers = makeKnown(RankedTensorType::get({width}, element), [&](KnownStorage &out) {
    for (int64_t i = 0; i < width; ++i)
      out.reals[i] = double(i);
  });
  Entry places = Entry::of(numbers), zero = eval.scalar(0, element), none = eval.scalar(double(width), element);
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
    Entry place = reduceRows(ReduceKind::min, eval.select(isGreatest, places, none));
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
  const Entry &x = node.inputs[0];
  FailureOr<int64_t> axis = normalizeAxis(node, node.getInt("axis", -1), x.getRank());
  if (failed(axis))
    return failure();
  Shape shape(x.getShape());
  if (list->size() != 1 || (*list)[0] < 0 || (*list)[0] > shape[*axis])
    return invalid(node, "takes a count that is not in [0, " + llvm::Twine(shape[*axis]) + "]");
  int64_t count = (*list)[0], width = shape[*axis];
  shape[*axis] = count;
  // Places are counted in the element type, of which f32 holds integers up to 2^24.
  bool isInReach = x.getElementType().isF32() && width < (int64_t(1) << 24);
  if (!isInReach || count < 1 || count > kMostRounds || x.type.getNumElements() == 0) {
    for (size_t i = 0; i < node.outputs.size(); ++i)
      if (failed(setShapeOnly(node, i, shape, i == 0 ? x.getElementType() : builder.getI64Type(),
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
  return failed(giveBack(0, values)) ? failure() : giveBack(1, indices);
}
