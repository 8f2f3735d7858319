//===- LegalizeIndexing.cpp - reads at places given by integers -----------===//

#include "Legalizer.h"

#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace windlass;

void Legalizer::registerIndexing() {
  handle("Gather", &Legalizer::legalizeGather);
  handle("GatherND", &Legalizer::legalizeGatherNd);
  handle("GatherElements", &Legalizer::legalizeGatherElements);
  handle("Trilu", &Legalizer::legalizeTrilu);
  handle("OneHot", &Legalizer::legalizeOneHot);
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
    for (int64_t index : indices.known->getStorage().integers) {
      if (index < -extent || index >= extent)
        return invalid(node, "reads index " + llvm::Twine(index) + " of a dimension of size " + llvm::Twine(extent));
      isNegative |= index < 0;
    }
    if (isNegative)
      indices = Entry::of(makeKnown(indices.type, [&](KnownStorage &out) {
        for (auto [to, from] : llvm::zip_equal(out.integers, indices.known->getStorage().integers))
          to = from < 0 ? from + extent : from;
      }));
  }
  return give(node, eval.gather(x, indices, *axis));
}

LogicalResult Legalizer::checkRowIndices(NodeContext &node, int64_t batch) {
  const Entry &x = node.inputs[0], &indices = node.inputs[1];
  if (indices.getRank() <= batch || x.getRank() <= batch || batch < 0 || indices.isFloat() || indices.isBoolean() ||
      indices.getShape().take_front(batch) != x.getShape().take_front(batch) || indices.getShape().back() < 1 ||
      indices.getShape().back() > x.getRank() - batch)
    return invalid(node, "has indices that do not fit its tensor");
  return success();
}

FailureOr<Entry> Legalizer::mergeIndices(NodeContext &node, int64_t batch) {
  const Entry &x = node.inputs[0];
  Type type = builder.getI64Type();
  Entry indices = eval.cast(node.inputs[1], type);
  if (!indices.isTensor())
    return indices;
  int64_t depth = indices.getShape().back(), last = indices.getRank() - 1;
  Shape outer(indices.getShape().drop_back());
  auto strides = getStrides(x.getShape().take_front(batch + depth));
  auto number = [&](int64_t value) { return eval.scalar(double(value), type); };
  Entry place = number(0), isOutside = eval.scalar(0, builder.getI1Type());
  for (int64_t dim = 0; dim < batch; ++dim) {
    Shape spread(last - dim, 1);
    spread[0] = outer[dim];
    Entry own = eval.reshape(countUp(outer[dim], type), spread);
    place = eval.binary(BinaryKind::add, place, eval.binary(BinaryKind::mul, own, number(strides[dim])));
  }
  for (int64_t i = 0; i < depth; ++i) {
    int64_t size = x.getShape()[batch + i];
    Entry index = eval.reshape(eval.sliceDim(indices, last, i, 1), outer);
    Entry fromEnd = eval.binary(BinaryKind::add, index, number(size));
    index = eval.select(eval.compare(CompareKind::less, index, number(0)), fromEnd, index);
    isOutside = eval.binary(BinaryKind::bitOr, isOutside, eval.compare(CompareKind::less, index, number(0)));
    isOutside = eval.binary(BinaryKind::bitOr, isOutside, eval.compare(CompareKind::greaterEqual, index, number(size)));
    place = eval.binary(BinaryKind::add, place, eval.binary(BinaryKind::mul, index, number(strides[batch + i])));
  }
  if (!place.isTensor() || !isOutside.isTensor())
    return place.isTensor() ? isOutside : place;
  if (isOutside.known && llvm::is_contained(isOutside.known->getStorage().booleans, 1))
    return invalid(node, "names an element outside of its tensor");
  // Merged, an index that is too large would name an element of another row.
  return eval.select(isOutside, number(llvm::product_of(x.getShape().take_front(batch + depth))), place);
}

LogicalResult Legalizer::legalizeGatherNd(NodeContext &node) {
  if (failed(expectTensors(node, 2)))
    return failure();
  const Entry &x = node.inputs[0], &indices = node.inputs[1];
  int64_t batch = node.getInt("batch_dims", 0);
  if (failed(checkRowIndices(node, batch)))
    return failure();
  // Each row of indices becomes one place in the leading dims, which are merged.
  int64_t depth = indices.getShape().back(), leading = batch + depth;
  Shape whole(indices.getShape().drop_back()), merged{llvm::product_of(x.getShape().take_front(leading))};
  llvm::append_range(whole, x.getShape().drop_front(leading));
  if (failed(checkCount(node, whole)))
    return failure();
  // These are rows of the first dim, such as those of the experts that a router has chosen.
  if (!indices.known && leading == 1)
    return give(node, eval.gather(x, eval.reshape(indices, indices.getShape().drop_back()), 0));
  llvm::append_range(merged, x.getShape().drop_front(leading));
  FailureOr<Entry> places = mergeIndices(node, batch);
  if (failed(places) || !places->isTensor())
    return failed(places) ? failure() : give(node, *places);
  Entry data = eval.reshape(x, merged);
  return give(node, data.isTensor() ? eval.gather(data, *places, 0) : data);
}

Entry Legalizer::gatherElements(const Entry &x, const Entry &indices, int64_t axis) {
  if (!x.isTensor() || !indices.isTensor())
    return {};
  // Other dims of the indices may be smaller: elements beyond them are not read.
  Shape starts(x.getRank(), 0), sizes(indices.getShape()), steps(x.getRank(), 1);
  sizes[axis] = x.getShape()[axis];
  Entry read = sizes == Shape(x.getShape()) ? x : eval.slice(x, starts, sizes, steps);
  Entry places = eval.cast(indices, builder.getI64Type());
  Value data = read.isTensor() ? eval.materialize(read) : Value();
  Value at = data && places.isTensor() ? eval.materialize(places) : Value();
  if (!at)
    return {};
  return Entry::of(
      train::GatherElementsOp::create(builder, eval.getLocation(), data, at, builder.getI64IntegerAttr(axis))
          .getResult());
}

LogicalResult Legalizer::checkElementIndices(NodeContext &node, int64_t axis) {
  const Entry &x = node.inputs[0], &indices = node.inputs[1];
  if (indices.getRank() != x.getRank() || indices.isFloat() || indices.isBoolean())
    return invalid(node, "has indices that do not fit its tensor");
  for (auto [i, dims] : llvm::enumerate(llvm::zip_equal(indices.getShape(), x.getShape())))
    if (static_cast<int64_t>(i) != axis && std::get<0>(dims) > std::get<1>(dims))
      return invalid(node, "has indices that do not fit its tensor");
  return success();
}

FailureOr<Entry> Legalizer::flattenElementIndices(NodeContext &node, int64_t axis) {
  const Entry &x = node.inputs[0], &indices = node.inputs[1];
  if (!eval.mayEvaluate(indices.known->getSize()))
    return unsupported("has too many indices");
  auto strides = getStrides(x.getShape()), own = getStrides(indices.getShape());
  bool isInside = true;
  Known flat = makeKnown(RankedTensorType::get(indices.getShape(), builder.getI64Type()), [&](KnownStorage &out) {
    for (int64_t i = 0, e = indices.known->getSize(); i < e; ++i) {
      int64_t at = 0;
      for (int64_t dim = 0; dim < x.getRank(); ++dim) {
        int64_t index = i / own[dim] % indices.getShape()[dim];
        if (dim == axis) {
          index = indices.known->getStorage().integers[i];
          index = index < 0 ? index + x.getShape()[dim] : index;
          isInside &= index >= 0 && index < x.getShape()[dim];
        }
        at += index * strides[dim];
      }
      out.integers[i] = at;
    }
  });
  if (!isInside)
    return invalid(node, "names an element outside of its tensor");
  return Entry::of(flat);
}

LogicalResult Legalizer::legalizeGatherElements(NodeContext &node) {
  if (failed(expectTensors(node, 2)))
    return failure();
  const Entry &x = node.inputs[0], &indices = node.inputs[1];
  FailureOr<int64_t> axis = normalizeAxis(node, node.getInt("axis", 0), x.getRank());
  if (failed(axis) || failed(checkElementIndices(node, *axis)))
    return failure();
  if (!indices.known)
    return give(node, gatherElements(x, indices, *axis));
  // One gather over all elements serves all dims.
  FailureOr<Entry> places = flattenElementIndices(node, *axis);
  if (failed(places))
    return failure();
  Entry data = eval.reshape(x, {x.type.getNumElements()});
  return give(node, data.isTensor() ? eval.gather(data, *places, 0) : data);
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
  if (!eval.mayEvaluate(rows + columns))
    return unsupported("is too large to be evaluated");
  Known mask = makeBand(builder.getContext(), rows, columns,
                        [&](int64_t difference) { return isUpper ? difference >= offset : difference <= offset; });
  return give(node, eval.select(Entry::of(mask), x, eval.scalar(0, x.getElementType())));
}

LogicalResult Legalizer::legalizeOneHot(NodeContext &node) {
  if (failed(expectTensors(node, 3)))
    return failure();
  const Entry &values = node.inputs[2];
  NodeContext sizes = node;
  sizes.inputs[1] = eval.cast(node.inputs[1], builder.getI64Type());
  FailureOr<Shape> depth = readIntegers(sizes, 1, "a depth");
  FailureOr<int64_t> axis = normalizeAxis(node, node.getInt("axis", -1), node.inputs[0].getRank() + 1);
  if (failed(depth) || failed(axis))
    return failure();
  if (depth->size() != 1 || (*depth)[0] < 1 || values.getShape() != llvm::ArrayRef<int64_t>{2})
    return invalid(node, "needs a depth of at least 1 and two values");
  Shape apart(node.inputs[0].getShape()), spread(apart.size() + 1 - *axis, 1), whole(apart);
  apart.insert(apart.begin() + *axis, 1);
  whole.insert(whole.begin() + *axis, (*depth)[0]);
  spread[0] = (*depth)[0];
  if (failed(checkCount(node, whole)))
    return failure();
  if (!eval.mayEvaluate((*depth)[0]))
    return unsupported("is too large to be evaluated");
  Type type = builder.getI64Type();
  Entry classes = eval.reshape(eval.cast(node.inputs[0], type), apart), size = eval.scalar(double((*depth)[0]), type);
  Entry isNegative = eval.compare(CompareKind::less, classes, eval.scalar(0, type));
  classes = eval.select(isNegative, eval.binary(BinaryKind::add, classes, size), classes);
  Entry isOn = eval.compare(CompareKind::equal, classes, eval.reshape(countUp((*depth)[0], type), spread));
  auto pick = [&](int64_t at) { return eval.reshape(eval.slice(values, {at}, {1}, {1}), {}); };
  return give(node, eval.select(isOn, pick(1), pick(0)));
}
