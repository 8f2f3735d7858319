//===- LegalizeStructural.cpp - operators that move elements --------------===//

#include "Legalizer.h"

#include "llvm/ADT/STLExtras.h"

#include <algorithm>
#include <limits>

using namespace mlir;
using namespace windlass;

void Legalizer::registerStructural() {
  handle("Reshape", &Legalizer::legalizeReshape);
  handle("Flatten", &Legalizer::legalizeFlatten);
  handle("Squeeze", &Legalizer::legalizeSqueeze);
  handle("Unsqueeze", &Legalizer::legalizeUnsqueeze);
  handle("Transpose", &Legalizer::legalizeTranspose);
  handle("Expand", &Legalizer::legalizeExpand);
  handle("Tile", &Legalizer::legalizeTile);
  handle("Concat", &Legalizer::legalizeConcat);
  handle("Split", &Legalizer::legalizeSplit);
  handle("Slice", &Legalizer::legalizeSlice);
  handle("Pad", &Legalizer::legalizePad);
  handle("DepthToSpace", &Legalizer::legalizeDepthToSpace);
  handle("SpaceToDepth", &Legalizer::legalizeDepthToSpace);
  handle("SplitToSequence", &Legalizer::legalizeSplitToSequence);
  handle("SequenceConstruct", &Legalizer::legalizeSequenceConstruct);
  handle("SequenceAt", &Legalizer::legalizeSequenceAt);
  handle("ConcatFromSequence", &Legalizer::legalizeConcatFromSequence);
}

LogicalResult Legalizer::legalizeReshape(NodeContext &node) {
  if (failed(expectTensors(node, 2)))
    return failure();
  const Entry &x = node.inputs[0];
  FailureOr<Shape> wanted = readIntegers(node, 1, "sizes");
  if (failed(wanted))
    return failure();
  bool allowZero = node.getInt("allowzero", 0) != 0;
  Shape shape;
  int64_t open = -1, rest = 1;
  for (auto [i, dim] : llvm::enumerate(*wanted)) {
    int64_t size = dim;
    if (size == 0 && !allowZero) {
      if (static_cast<int64_t>(i) >= x.getRank())
        return invalid(node, "copies dimension " + llvm::Twine(i) + " of a tensor of rank " + llvm::Twine(x.getRank()));
      size = x.getShape()[i];
    }
    if (size == -1) {
      if (open >= 0)
        return invalid(node, "leaves two dimensions open");
      open = static_cast<int64_t>(i);
    } else if (size < 0 || size > (int64_t(1) << 44)) {
      return invalid(node, "asks for a dimension of " + llvm::Twine(size));
    } else {
      if (size != 0 && rest > (int64_t(1) << 44) / size)
        return invalid(node, "asks for more than 2^44 elements");
      rest *= size;
    }
    shape.push_back(size);
  }
  int64_t count = x.type.getNumElements();
  if (open >= 0) {
    if (rest == 0 || count % rest != 0)
      return invalid(node, "cannot share " + llvm::Twine(count) + " elements among rows of " + llvm::Twine(rest));
    shape[open] = count / rest;
  } else if (rest != count) {
    return invalid(node, "gives " + llvm::Twine(rest) + " elements but has " + llvm::Twine(count));
  }
  return give(node, eval.reshape(x, shape));
}

LogicalResult Legalizer::legalizeFlatten(NodeContext &node) {
  if (failed(expectTensors(node, 1)))
    return failure();
  llvm::ArrayRef<int64_t> shape = node.inputs[0].getShape();
  int64_t rank = node.inputs[0].getRank(), axis = node.getInt("axis", 1);
  if (axis < -rank || axis > rank)
    return invalid(node, "has axis " + llvm::Twine(axis) + " for a tensor of rank " + llvm::Twine(rank));
  axis = axis < 0 ? axis + rank : axis;
  return give(node, eval.reshape(node.inputs[0],
                                 {llvm::product_of(shape.take_front(axis)), llvm::product_of(shape.drop_front(axis))}));
}

LogicalResult Legalizer::legalizeSqueeze(NodeContext &node) {
  if (failed(expectTensors(node, 1)))
    return failure();
  const Entry &x = node.inputs[0];
  bool isListed = node.getInts("axes") || node.has(1);
  FailureOr<Shape> axes = readAxes(node, 1, x.getRank());
  if (failed(axes))
    return failure();
  Shape shape;
  for (auto [i, dim] : llvm::enumerate(x.getShape())) {
    bool isRemoved = isListed ? llvm::is_contained(*axes, i) : dim == 1;
    if (isRemoved && dim != 1)
      return invalid(node, "removes dimension " + llvm::Twine(i) + ", which has size " + llvm::Twine(dim));
    if (!isRemoved)
      shape.push_back(dim);
  }
  return give(node, eval.reshape(x, shape));
}

LogicalResult Legalizer::legalizeUnsqueeze(NodeContext &node) {
  if (failed(expectTensors(node, 2)))
    return failure();
  const Entry &x = node.inputs[0];
  FailureOr<Shape> list = readIntegers(node, 1, "axes");
  if (failed(list))
    return failure();
  int64_t rank = x.getRank() + static_cast<int64_t>(list->size());
  if (rank > 64)
    return unsupported("gives a tensor of rank " + llvm::Twine(rank));
  FailureOr<Shape> axes = readAxes(node, 1, rank);
  if (failed(axes))
    return failure();
  Shape shape;
  size_t next = 0;
  for (int64_t i = 0; i < rank; ++i)
    shape.push_back(llvm::is_contained(*axes, i) ? 1 : x.getShape()[next++]);
  return give(node, eval.reshape(x, shape));
}

LogicalResult Legalizer::legalizeTranspose(NodeContext &node) {
  if (failed(expectTensors(node, 1)))
    return failure();
  const Entry &x = node.inputs[0];
  Shape permutation;
  if (auto list = node.getInts("perm"))
    permutation.assign(list->begin(), list->end());
  else
    for (int64_t i = x.getRank() - 1; i >= 0; --i)
      permutation.push_back(i);
  Shape sorted(permutation);
  llvm::sort(sorted);
  if (!llvm::equal(sorted, llvm::seq<int64_t>(0, x.getRank())))
    return invalid(node, "has a perm that is not a permutation of " + llvm::Twine(x.getRank()) + " dimensions");
  return give(node, eval.transpose(x, permutation));
}

LogicalResult Legalizer::legalizeExpand(NodeContext &node) {
  if (failed(expectTensors(node, 2)))
    return failure();
  FailureOr<Shape> wanted = readIntegers(node, 1, "sizes");
  if (failed(wanted) || failed(checkCount(node, *wanted)))
    return failure();
  FailureOr<Shape> shape = broadcastShapes(node.inputs[0].getShape(), *wanted);
  if (failed(shape))
    return invalid(node, "cannot spread its operand to the sizes that it asks for");
  if (failed(checkCount(node, *shape)))
    return failure();
  return give(node, eval.broadcast(node.inputs[0], *shape));
}

LogicalResult Legalizer::legalizeTile(NodeContext &node) {
  if (failed(expectTensors(node, 2)))
    return failure();
  const Entry &x = node.inputs[0];
  FailureOr<Shape> repeats = readIntegers(node, 1, "repeats");
  if (failed(repeats))
    return failure();
  if (static_cast<int64_t>(repeats->size()) != x.getRank())
    return invalid(node,
                   "has " + llvm::Twine(repeats->size()) + " repeats for a tensor of rank " + llvm::Twine(x.getRank()));
  // [a, b] becomes [1, a, 1, b], is spread to [r, a, s, b] and merged again.
  Shape apart, spread, merged;
  for (auto [dim, times] : llvm::zip_equal(x.getShape(), *repeats)) {
    if (times < 1 || times > (int64_t(1) << 40))
      return invalid(node, "repeats a dimension " + llvm::Twine(times) + " times");
    apart.append({1, dim});
    spread.append({times, dim});
    merged.push_back(dim == 0 ? 0 : times > (int64_t(1) << 44) / dim ? -1 : times * dim);
  }
  if (failed(checkCount(node, merged)))
    return failure();
  Entry result = eval.reshape(x, apart);
  if (result.isTensor())
    result = eval.broadcast(result, spread);
  return give(node, result.isTensor() ? eval.reshape(result, merged) : result);
}

LogicalResult Legalizer::concatEntries(NodeContext &node, llvm::ArrayRef<Entry> parts, int64_t axis) {
  if (parts.empty())
    return invalid(node, "has nothing to concatenate");
  FailureOr<int64_t> normal = normalizeAxis(node, axis, parts[0].getRank());
  if (failed(normal))
    return failure();
  Shape shape(parts[0].getShape());
  for (const Entry &part : llvm::drop_begin(parts)) {
    if (part.getRank() != parts[0].getRank() || part.getElementType() != parts[0].getElementType())
      return invalid(node, "has operands of different ranks or element types");
    for (auto [i, dim] : llvm::enumerate(part.getShape()))
      if (static_cast<int64_t>(i) != *normal && dim != shape[i])
        return invalid(node, "has operands that differ in dimension " + llvm::Twine(i) + ": " + llvm::Twine(shape[i]) +
                                 " and " + llvm::Twine(dim));
    shape[*normal] += part.getShape()[*normal];
    if (failed(checkCount(node, shape)))
      return failure();
  }
  return give(node, eval.concat(parts, *normal));
}

LogicalResult Legalizer::legalizeConcat(NodeContext &node) {
  if (failed(expectTensors(node, std::max<size_t>(1, node.inputs.size()))))
    return failure();
  return concatEntries(node, node.inputs, node.getInt("axis", 0));
}

/// Returns the parts of `sizes` along `axis`: known ones are cut, live ones come from one split op.
FailureOr<std::vector<Entry>> Legalizer::splitEntry(NodeContext &node, const Entry &x, int64_t axis,
                                                    llvm::ArrayRef<int64_t> sizes) {
  int64_t total = 0;
  for (int64_t size : sizes) {
    if (size < 0 || size > x.getShape()[axis] - total)
      return invalid(node, "splits dimension " + llvm::Twine(axis) + " of size " + llvm::Twine(x.getShape()[axis]) +
                               " into parts that do not add up to it");
    total += size;
  }
  if (total != x.getShape()[axis])
    return invalid(node, "splits dimension " + llvm::Twine(axis) + " of size " + llvm::Twine(x.getShape()[axis]) +
                             " into parts of " + llvm::Twine(total) + " in all");
  std::vector<Entry> parts;
  if (sizes.size() == 1) {
    parts.push_back(x);
    return parts;
  }
  if (x.known || llvm::is_contained(sizes, 0)) {
    Shape starts(x.getRank(), 0), box(x.getShape()), ones(x.getRank(), 1);
    for (int64_t size : sizes) {
      box[axis] = size;
      parts.push_back(eval.slice(x, starts, box, ones));
      if (!parts.back().isTensor())
        return unsupported(eval.takeReason());
      starts[axis] += size;
    }
    return parts;
  }
  llvm::SmallVector<Type> types;
  Shape shape(x.getShape());
  for (int64_t size : sizes) {
    shape[axis] = size;
    types.push_back(RankedTensorType::get(shape, x.getElementType()));
  }
  auto split = train::SplitOp::create(builder, eval.getLocation(), types, eval.materialize(x), axis, sizes);
  for (Value part : split.getResults())
    parts.push_back(Entry::of(part));
  return parts;
}

LogicalResult Legalizer::legalizeSplit(NodeContext &node) {
  if (failed(expectTensors(node, 1)))
    return failure();
  const Entry &x = node.inputs[0];
  FailureOr<int64_t> axis = normalizeAxis(node, node.getInt("axis", 0), x.getRank());
  if (failed(axis))
    return failure();
  Shape sizes;
  if (node.has(1)) {
    FailureOr<Shape> list = readIntegers(node, 1, "sizes");
    if (failed(list))
      return failure();
    sizes = *list;
  } else {
    // The parts are equal, with a smaller last one where they do not divide.
    int64_t parts = node.getInt("num_outputs", static_cast<int64_t>(node.outputs.size()));
    if (parts < 1 || parts != static_cast<int64_t>(node.outputs.size()))
      return invalid(node,
                     "has " + llvm::Twine(node.outputs.size()) + " outputs but num_outputs = " + llvm::Twine(parts));
    int64_t left = x.getShape()[*axis], size = (left + parts - 1) / parts;
    for (int64_t i = 0; i < parts; ++i) {
      sizes.push_back(std::min(size, left));
      left -= sizes.back();
    }
  }
  if (sizes.size() != node.outputs.size())
    return invalid(node,
                   "has " + llvm::Twine(node.outputs.size()) + " outputs but " + llvm::Twine(sizes.size()) + " sizes");
  FailureOr<std::vector<Entry>> parts = splitEntry(node, x, *axis, sizes);
  if (failed(parts))
    return failure();
  llvm::copy(*parts, node.outputs.begin());
  return success();
}

LogicalResult Legalizer::legalizeSplitToSequence(NodeContext &node) {
  if (failed(expectTensors(node, 1)))
    return failure();
  const Entry &x = node.inputs[0];
  FailureOr<int64_t> axis = normalizeAxis(node, node.getInt("axis", 0), x.getRank());
  if (failed(axis))
    return failure();
  int64_t extent = x.getShape()[*axis];
  Shape sizes;
  bool dropsAxis = false;
  if (!node.has(1)) {
    dropsAxis = node.getInt("keepdims", 1) == 0;
    if (extent > 65536)
      return unsupported("splits into " + llvm::Twine(extent) + " parts");
    sizes.assign(extent, 1);
  } else {
    FailureOr<Shape> list = readIntegers(node, 1, "sizes");
    if (failed(list))
      return failure();
    if (node.inputs[1].getRank() == 0) {
      int64_t size = (*list)[0];
      if (size < 1 || extent / size > 65536)
        return invalid(node, "splits " + llvm::Twine(extent) + " into parts of " + llvm::Twine(size));
      for (int64_t left = extent; left > 0; left -= size)
        sizes.push_back(std::min(size, left));
    } else {
      sizes = *list;
    }
  }
  if (!sequenceParts.spend(static_cast<int64_t>(sizes.size())))
    return tooManyParts();
  FailureOr<std::vector<Entry>> parts = splitEntry(node, x, *axis, sizes);
  if (failed(parts))
    return failure();
  if (dropsAxis) {
    Shape shape(x.getShape());
    shape.erase(shape.begin() + *axis);
    for (Entry &part : *parts)
      part = eval.reshape(part, shape);
  }
  node.outputs[0].kind = Entry::Kind::sequence;
  node.outputs[0].sequence = std::make_shared<std::vector<Entry>>(std::move(*parts));
  return success();
}

LogicalResult Legalizer::tooManyParts() {
  return unsupported("takes the sequences of the model to more than " + llvm::Twine(sequenceParts.getLimit()) +
                     " parts in all");
}

LogicalResult Legalizer::legalizeSequenceConstruct(NodeContext &node) {
  if (failed(expectTensors(node, node.inputs.size())))
    return failure();
  node.outputs[0].kind = Entry::Kind::sequence;
  node.outputs[0].sequence = std::make_shared<std::vector<Entry>>(node.inputs.begin(), node.inputs.end());
  return success();
}

LogicalResult Legalizer::legalizeSequenceAt(NodeContext &node) {
  if (node.inputs.size() != 2 || node.inputs[0].kind != Entry::Kind::sequence)
    return invalid(node, "needs a sequence and a position");
  FailureOr<Shape> position = readIntegers(node, 1, "a position");
  if (failed(position))
    return failure();
  auto count = static_cast<int64_t>(node.inputs[0].sequence->size());
  int64_t at = position->size() == 1 ? (*position)[0] : count;
  at = at < 0 ? at + count : at;
  if (at < 0 || at >= count)
    return invalid(node, "takes a position that is not in a sequence of " + llvm::Twine(count));
  return give(node, (*node.inputs[0].sequence)[at]);
}

LogicalResult Legalizer::legalizeConcatFromSequence(NodeContext &node) {
  if (node.inputs.size() != 1 || node.inputs[0].kind != Entry::Kind::sequence)
    return invalid(node, "needs a sequence");
  if (!sequenceParts.spend(static_cast<int64_t>(node.inputs[0].sequence->size())))
    return tooManyParts();
  std::vector<Entry> parts = *node.inputs[0].sequence;
  int64_t axis = node.getInt("axis", 0);
  if (node.getInt("new_axis", 0) != 0 && !parts.empty()) {
    FailureOr<int64_t> normal = normalizeAxis(node, axis, parts[0].getRank() + 1);
    if (failed(normal))
      return failure();
    axis = *normal;
    for (Entry &part : parts) {
      Shape shape(part.getShape());
      if (axis > static_cast<int64_t>(shape.size()))
        return invalid(node, "has parts of different ranks");
      shape.insert(shape.begin() + axis, 1);
      part = eval.reshape(part, shape);
    }
  }
  return concatEntries(node, parts, axis);
}

LogicalResult Legalizer::legalizeSlice(NodeContext &node) {
  if (failed(expectTensors(node, 3)))
    return failure();
  const Entry &x = node.inputs[0];
  FailureOr<Shape> starts = readIntegers(node, 1, "starts"), ends = readIntegers(node, 2, "ends");
  if (failed(starts) || failed(ends))
    return failure();
  Shape axes, steps(starts->size(), 1);
  if (node.has(3)) {
    FailureOr<Shape> list = readAxes(node, 3, x.getRank());
    if (failed(list))
      return failure();
    axes = *list;
  } else {
    llvm::append_range(axes, llvm::seq<int64_t>(0, static_cast<int64_t>(starts->size())));
  }
  if (node.has(4)) {
    FailureOr<Shape> list = readIntegers(node, 4, "steps");
    if (failed(list))
      return failure();
    steps = *list;
  }
  if (starts->size() != ends->size() || starts->size() != axes.size() || starts->size() != steps.size() ||
      static_cast<int64_t>(axes.size()) > x.getRank())
    return invalid(node, "has starts, ends, axes and steps of different lengths");
  Shape from(x.getRank(), 0), sizes(x.getShape()), stride(x.getRank(), 1);
  for (auto [start, end, axis, step] : llvm::zip_equal(*starts, *ends, axes, steps)) {
    int64_t dim = x.getShape()[axis];
    if (step == 0 || step == std::numeric_limits<int64_t>::min())
      return invalid(node, "has a step of " + llvm::Twine(step));
    // Bounds of INT64_MAX and INT64_MIN mean the ends; they are clamped before anything is added to them.
    auto clamp = [&](int64_t bound, int64_t low, int64_t high) {
      if (bound < 0)
        bound = bound < -dim ? -1 : bound + dim;
      return std::min(std::max(bound, low), high);
    };
    int64_t size;
    if (step > 0) {
      from[axis] = clamp(start, 0, dim);
      int64_t to = end < -dim ? 0 : clamp(end, 0, dim), length = std::max<int64_t>(0, to - from[axis]);
      size = length / step + (length % step != 0);
    } else {
      from[axis] = clamp(start, -1, dim - 1);
      int64_t to = clamp(end, -1, dim - 1), length = std::max<int64_t>(0, from[axis] - to);
      size = length / -step + (length % -step != 0);
    }
    from[axis] = size == 0 ? 0 : from[axis];
    sizes[axis] = size;
    stride[axis] = size <= 1 ? 1 : step;
  }
  return give(node, eval.slice(x, from, sizes, stride));
}

/// Returns which of `size` elements a padding by repetition puts at the place `at`, which may lie outside of them.
static int64_t findRepeated(llvm::StringRef mode, int64_t at, int64_t size) {
  if (mode == "edge")
    return std::clamp<int64_t>(at, 0, size - 1);
  int64_t period = mode == "wrap" ? size : std::max<int64_t>(2 * (size - 1), 1);
  int64_t rest = (at % period + period) % period;
  return mode == "wrap" || rest < size ? rest : period - rest;
}

LogicalResult Legalizer::legalizePad(NodeContext &node) {
  if (failed(expectTensors(node, 2)))
    return failure();
  const Entry &x = node.inputs[0];
  llvm::StringRef mode = node.getString("mode", "constant");
  if (mode != "constant" && mode != "reflect" && mode != "edge" && mode != "wrap")
    return invalid(node, "has the mode '" + mode.take_front(40) + "'; it must be constant, reflect, edge or wrap");
  FailureOr<Shape> pads = readIntegers(node, 1, "pads");
  if (failed(pads))
    return failure();
  Shape axes;
  if (node.has(3)) {
    FailureOr<Shape> list = readAxes(node, 3, x.getRank());
    if (failed(list))
      return failure();
    axes = *list;
  } else {
    llvm::append_range(axes, llvm::seq<int64_t>(0, x.getRank()));
  }
  if (pads->size() != 2 * axes.size())
    return invalid(node, "has " + llvm::Twine(pads->size()) + " pads for " + llvm::Twine(axes.size()) + " dimensions");
  double value = 0;
  if (node.has(2)) {
    const Entry &fill = node.inputs[2];
    if (!fill.isTensor() || !fill.known || fill.known->getSize() != 1)
      return unsupported("pads with a value that is not a constant");
    value = fill.known->getReal(0);
  }
  Shape low(x.getRank(), 0), high(x.getRank(), 0), starts(x.getRank(), 0), sizes(x.getShape()), shape(x.getShape());
  for (auto [i, axis] : llvm::enumerate(axes)) {
    int64_t before = (*pads)[i], after = (*pads)[i + axes.size()];
    constexpr int64_t limit = int64_t(1) << 40;
    if (before < -limit || before > limit || after < -limit || after > limit)
      return invalid(node, "pads by more than 2^40 elements");
    // A negative pad cuts.
    starts[axis] = std::max<int64_t>(0, -before);
    sizes[axis] -= std::max<int64_t>(0, -before) + std::max<int64_t>(0, -after);
    if (sizes[axis] < 0)
      return invalid(node, "cuts more than there is in dimension " + llvm::Twine(axis));
    low[axis] = std::max<int64_t>(0, before);
    high[axis] = std::max<int64_t>(0, after);
    shape[axis] = sizes[axis] + low[axis] + high[axis];
  }
  if (failed(checkCount(node, shape)))
    return failure();
  Entry inner = eval.slice(x, starts, sizes, Shape(x.getRank(), 1));
  if (mode == "constant")
    return give(node, eval.pad(inner, low, high, value));
  for (int64_t axis : axes)
    if (low[axis] + high[axis] > 0) {
      if (sizes[axis] < 1)
        return invalid(node, "repeats the elements of dimension " + llvm::Twine(axis) + ", which has none");
      if (!eval.mayEvaluate(shape[axis]))
        return unsupported("is too large for the places of its elements to be evaluated");
      Shape places;
      for (int64_t at = -low[axis]; at < sizes[axis] + high[axis]; ++at)
        places.push_back(findRepeated(mode, at, sizes[axis]));
      inner = eval.gather(inner, Entry::of(makeKnownIntegers(builder.getContext(), places)), axis);
    }
  return give(node, inner);
}
