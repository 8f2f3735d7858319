//===- LegalizeConstants.cpp - constants, shapes and ranges ---------------===//

#include "Legalizer.h"
#include "windlass/Support/TensorBytes.h"

#include "llvm/ADT/STLExtras.h"

#include <cmath>

using namespace mlir;
using namespace windlass;

void Legalizer::registerConstants() {
  handle("Constant", &Legalizer::legalizeConstant);
  handle("ConstantOfShape", &Legalizer::legalizeConstantOfShape);
  handle("Shape", &Legalizer::legalizeShape);
  handle("Size", &Legalizer::legalizeSize);
  handle("Range", &Legalizer::legalizeRange);
  handle("EyeLike", &Legalizer::legalizeEyeLike);
}

LogicalResult Legalizer::legalizeConstant(NodeContext &node) {
  auto i64 = builder.getI64Type();
  auto f32 = builder.getF32Type();
  auto dense = [&](DenseElementsAttr value) {
    // Equal constants are one known tensor, so that the chains above them are evaluated once.
    Known &known = constants[value];
    if (!known)
      known = makeKnown(value);
    return give(node, Entry::of(known));
  };
  if (auto value = dyn_cast_or_null<DenseElementsAttr>(node.attribute("value")))
    return dense(value);
  if (auto pair = dyn_cast_or_null<ArrayAttr>(node.attribute("value")); pair && pair.size() == 2) {
    auto source = dyn_cast<onnx::SourceAttr>(pair[0]);
    auto type = dyn_cast<TypeAttr>(pair[1]);
    auto tensor = type ? dyn_cast<RankedTensorType>(type.getValue()) : RankedTensorType();
    if (!source || !tensor || !weights)
      return unsupported("holds values that are not at hand");
    llvm::Expected<llvm::ArrayRef<char>> bytes = weights->getMessageBytes(source.getOffset(), source.getLength());
    if (!bytes)
      return invalid(node, llvm::toString(bytes.takeError()));
    if (static_cast<int64_t>(bytes->size()) != getTensorBytes(tensor))
      return invalid(node, "holds values that do not fit its type");
    if (!eval.mayEvaluate(tensor.getNumElements()))
      return unsupported("holds " + llvm::Twine(tensor.getNumElements()) + " elements");
    Known &known = constants[pair];
    if (!known)
      known = makeKnown(tensor, *bytes);
    return give(node, Entry::of(known));
  }
  if (auto value = dyn_cast_or_null<IntegerAttr>(node.attribute("value_int")))
    return dense(DenseElementsAttr::get(RankedTensorType::get({}, i64), value.getInt()));
  if (auto value = dyn_cast_or_null<FloatAttr>(node.attribute("value_float")))
    return dense(DenseElementsAttr::get(RankedTensorType::get({}, f32), static_cast<float>(value.getValueAsDouble())));
  if (auto value = node.getInts("value_ints"))
    return dense(DenseElementsAttr::get(RankedTensorType::get({static_cast<int64_t>(value->size())}, i64), *value));
  if (auto value = dyn_cast_or_null<DenseF32ArrayAttr>(node.attribute("value_floats")))
    return dense(DenseElementsAttr::get(RankedTensorType::get({value.size()}, f32), value.asArrayRef()));
  return unsupported("holds a value of a kind that is not supported");
}

LogicalResult Legalizer::legalizeConstantOfShape(NodeContext &node) {
  if (failed(expectTensors(node, 1)))
    return failure();
  FailureOr<Shape> shape = readIntegers(node, 0, "sizes");
  if (failed(shape) || failed(checkCount(node, *shape)))
    return failure();
  Known value = makeKnownSplat(RankedTensorType::get({1}, builder.getF32Type()), 0);
  if (auto stated = dyn_cast_or_null<DenseElementsAttr>(node.attribute("value"))) {
    if (stated.getNumElements() != 1)
      return invalid(node, "has a value of " + llvm::Twine(stated.getNumElements()) + " elements");
    value = makeKnown(stated);
  }
  Entry splat = eval.broadcast(Entry::of(knownReshape(value, {})), *shape);
  if (!splat.known)
    return unsupported("gives " + llvm::Twine(llvm::product_of(*shape)) + " elements");
  return give(node, splat);
}

LogicalResult Legalizer::legalizeShape(NodeContext &node) {
  if (failed(expectTensors(node, 1)))
    return failure();
  int64_t rank = node.inputs[0].getRank();
  auto clamp = [&](int64_t bound) {
    bound = bound < -rank ? 0 : bound < 0 ? bound + rank : bound;
    return std::min(std::max<int64_t>(bound, 0), rank);
  };
  int64_t start = clamp(node.getInt("start", 0)), end = clamp(node.getInt("end", rank));
  llvm::ArrayRef<int64_t> shape = node.inputs[0].getShape();
  return give(
      node, Entry::of(makeKnownIntegers(builder.getContext(), shape.slice(start, std::max<int64_t>(0, end - start)))));
}

LogicalResult Legalizer::legalizeSize(NodeContext &node) {
  if (failed(expectTensors(node, 1)))
    return failure();
  auto type = RankedTensorType::get({}, builder.getI64Type());
  int64_t count = node.inputs[0].type.getNumElements();
  return give(node, Entry::of(makeKnown(type, [&](KnownStorage &out) { out.integers[0] = count; })));
}

LogicalResult Legalizer::legalizeRange(NodeContext &node) {
  if (failed(expectTensors(node, 3)))
    return failure();
  for (const Entry &bound : node.inputs) {
    if (!bound.known)
      return unsupported("has bounds that depend on an input or a parameter");
    if (bound.known->getSize() != 1 || bound.getElementType() != node.inputs[0].getElementType() || bound.isBoolean())
      return invalid(node, "has bounds that are not three numbers of one type");
  }
  const Known &start = node.inputs[0].known, &limit = node.inputs[1].known, &delta = node.inputs[2].known;
  Type element = node.inputs[0].getElementType();
  double count = std::ceil((limit->getReal(0) - start->getReal(0)) / delta->getReal(0));
  if (delta->getReal(0) == 0 || !(count < 1e15))
    return invalid(node, "has a step of 0 or bounds that never meet");
  int64_t size = static_cast<int64_t>(std::max(0.0, count));
  if (!eval.mayEvaluate(size))
    return unsupported("gives " + llvm::Twine(size) + " elements");
  return give(node, Entry::of(makeKnown(RankedTensorType::get({size}, element), [&](KnownStorage &out) {
                for (int64_t i = 0; i < size; ++i) {
                  if (start->isFloat())
                    out.reals[i] = roundReal(start->getReal(0) + double(i) * delta->getReal(0), element);
                  else
                    out.integers[i] =
                        static_cast<int64_t>(static_cast<uint64_t>(start->getInteger(0)) +
                                             static_cast<uint64_t>(i) * static_cast<uint64_t>(delta->getInteger(0)));
                }
              })));
}

LogicalResult Legalizer::legalizeEyeLike(NodeContext &node) {
  if (failed(expectTensors(node, 1)))
    return failure();
  const Entry &x = node.inputs[0];
  if (x.getRank() != 2)
    return invalid(node, "needs a matrix");
  if (node.attribute("dtype"))
    return unsupported("states an element type");
  if (!eval.mayEvaluate(x.type.getNumElements()))
    return unsupported("gives " + llvm::Twine(x.type.getNumElements()) + " elements");
  int64_t rows = x.getShape()[0], columns = x.getShape()[1];
  int64_t offset = std::min(std::max(node.getInt("k", 0), -(int64_t(1) << 40)), int64_t(1) << 40);
  return give(node, Entry::of(makeKnown(x.type, [&](KnownStorage &out) {
                for (int64_t i = 0; i < rows; ++i)
                  for (int64_t j = 0; j < columns; ++j) {
                    bool isOne = j == i + offset;
                    int64_t at = i * columns + j;
                    if (x.isBoolean())
                      out.booleans[at] = isOne;
                    else if (x.isFloat())
                      out.reals[at] = isOne;
                    else
                      out.integers[at] = isOne;
                  }
              })));
}
