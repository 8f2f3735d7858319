//===- Known.cpp - tensors whose values the importer knows ----------------===//

#include "Known.h"

#include "llvm/ADT/APFloat.h"
#include "llvm/ADT/STLExtras.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <limits>

using namespace mlir;
using namespace windlass;

int64_t KnownTensor::nextId() {
  static std::atomic<int64_t> counter{0};
  return ++counter;
}

KnownTensor::KnownTensor(RankedTensorType type, std::shared_ptr<const KnownStorage> storage)
    : type(type), id(nextId()), storage(std::move(storage)) {}

template <typename T> static bool allEqual(const std::vector<T> &values) {
  // Compares bits, not values, because two equal NaN are one constant.
  return values.size() < 2 || std::memcmp(values.data(), values.data() + 1, (values.size() - 1) * sizeof(T)) == 0;
}

bool KnownTensor::isSplat() const {
  if (source)
    return source->isSplat();
  return allEqual(storage->booleans) && allEqual(storage->integers) && allEqual(storage->reals);
}

int64_t windlass::wrapInteger(int64_t value, Type elementType) {
  auto type = cast<IntegerType>(elementType);
  unsigned width = type.getWidth();
  if (width >= 64)
    return value;
  uint64_t bits = static_cast<uint64_t>(value) & ((uint64_t(1) << width) - 1);
  if (!type.isUnsigned() && (bits >> (width - 1)) != 0)
    bits |= ~uint64_t(0) << width;
  return static_cast<int64_t>(bits);
}

int64_t windlass::toInteger(double value) {
  constexpr double limit = 9223372036854775808.0;
  return std::isnan(value) ? 0
         : value >= limit  ? std::numeric_limits<int64_t>::max()
         : value <= -limit ? std::numeric_limits<int64_t>::min()
                           : static_cast<int64_t>(value);
}

double windlass::roundReal(double value, Type elementType) {
  if (elementType.isF64() || !isa<FloatType>(elementType))
    return value;
  if (elementType.isF32())
    return static_cast<float>(value);
  llvm::APFloat number(value);
  bool losesInfo = false;
  number.convert(cast<FloatType>(elementType).getFloatSemantics(), llvm::APFloat::rmNearestTiesToEven, &losesInfo);
  return number.convertToDouble();
}

Known windlass::makeKnown(RankedTensorType type, llvm::function_ref<void(KnownStorage &)> fill) {
  auto storage = std::make_shared<KnownStorage>();
  int64_t size = type.getNumElements();
  if (type.getElementType().isInteger(1))
    storage->booleans.resize(size);
  else if (isa<FloatType>(type.getElementType()))
    storage->reals.resize(size);
  else
    storage->integers.resize(size);
  fill(*storage);
  return std::make_shared<KnownTensor>(type, std::move(storage));
}

Type windlass::getComputedType(Type elementType) {
  return elementType && (elementType.isF16() || elementType.isBF16()) ? Float32Type::get(elementType.getContext())
                                                                      : elementType;
}

Known windlass::makeKnown(DenseElementsAttr value) {
  auto type = cast<RankedTensorType>(value.getType());
  return makeKnown(type.clone(getComputedType(type.getElementType())), [&](KnownStorage &storage) {
    size_t i = 0;
    if (isa<FloatType>(type.getElementType())) {
      for (llvm::APFloat element : value.getValues<llvm::APFloat>())
        storage.reals[i++] = element.convertToDouble();
      return;
    }
    bool isUnsigned = type.getElementType().isUnsignedInteger();
    for (llvm::APInt element : value.getValues<llvm::APInt>()) {
      int64_t number = isUnsigned || element.getBitWidth() == 1 ? static_cast<int64_t>(element.getZExtValue())
                                                                : element.getSExtValue();
      if (element.getBitWidth() == 1)
        storage.booleans[i++] = number != 0;
      else
        storage.integers[i++] = number;
    }
  });
}

Known windlass::makeKnown(RankedTensorType type, llvm::ArrayRef<char> bytes) {
  Type element = type.getElementType();
  int64_t width = std::max<int64_t>(1, element.getIntOrFloatBitWidth() / 8);
  return makeKnown(type.clone(getComputedType(element)), [&](KnownStorage &storage) {
    for (int64_t i = 0, e = type.getNumElements(); i < e; ++i) {
      uint64_t bits = 0;
      std::memcpy(&bits, bytes.data() + i * width, width);
      if (element.isInteger(1))
        storage.booleans[i] = bits != 0;
      else if (auto floatType = dyn_cast<FloatType>(element))
        storage.reals[i] =
            llvm::APFloat(floatType.getFloatSemantics(), llvm::APInt(floatType.getWidth(), bits)).convertToDouble();
      else
        storage.integers[i] = wrapInteger(static_cast<int64_t>(bits), element);
    }
  });
}

Known windlass::makeKnownIntegers(MLIRContext *context, llvm::ArrayRef<int64_t> values) {
  auto type = RankedTensorType::get({static_cast<int64_t>(values.size())}, IntegerType::get(context, 64));
  return makeKnown(type, [&](KnownStorage &storage) { llvm::copy(values, storage.integers.begin()); });
}

Known windlass::makeKnownSplat(RankedTensorType type, double value) {
  return makeKnown(type, [&](KnownStorage &storage) {
    llvm::fill(storage.booleans, value != 0);
    llvm::fill(storage.integers, toInteger(value));
    llvm::fill(storage.reals, value);
  });
}

int64_t windlass::countSaturated(llvm::ArrayRef<int64_t> shape) {
  int64_t count = 1;
  for (int64_t dim : shape) {
    if (dim != 0 && count > (int64_t(1) << 48) / dim)
      return int64_t(1) << 48;
    count *= dim;
  }
  return count;
}

FailureOr<Shape> windlass::broadcastShapes(llvm::ArrayRef<int64_t> lhs, llvm::ArrayRef<int64_t> rhs) {
  Shape result(std::max(lhs.size(), rhs.size()), 1);
  for (size_t i = 0; i < result.size(); ++i) {
    int64_t a = i < lhs.size() ? lhs[lhs.size() - 1 - i] : 1, b = i < rhs.size() ? rhs[rhs.size() - 1 - i] : 1;
    if (a != b && a != 1 && b != 1)
      return failure();
    result[result.size() - 1 - i] = a == 1 ? b : a;
  }
  return result;
}

llvm::SmallVector<int64_t> windlass::getStrides(llvm::ArrayRef<int64_t> shape) {
  llvm::SmallVector<int64_t> strides(shape.size(), 1);
  for (int64_t i = static_cast<int64_t>(shape.size()) - 2; i >= 0; --i)
    strides[i] = strides[i + 1] * shape[i + 1];
  return strides;
}

//===----------------------------------------------------------------------===//
// Moving elements
//===----------------------------------------------------------------------===//

void windlass::forEachRow(llvm::ArrayRef<int64_t> shape, int64_t offset, llvm::ArrayRef<int64_t> strides,
                          llvm::function_ref<void(int64_t, int64_t, int64_t)> row) {
  int64_t rank = static_cast<int64_t>(shape.size());
  if (llvm::is_contained(shape, 0))
    return;
  if (rank == 0)
    return row(0, offset, 1);
  int64_t count = shape.back(), out = 0;
  Shape at(rank, 0);
  while (true) {
    row(out, offset, count);
    out += count;
    int64_t dim = rank - 2;
    for (; dim >= 0; --dim) {
      offset += strides[dim];
      if (++at[dim] < shape[dim])
        break;
      offset -= strides[dim] * shape[dim];
      at[dim] = 0;
    }
    if (dim < 0)
      return;
  }
}

template <typename T>
static void placeBox(const std::vector<T> &in, llvm::ArrayRef<int64_t> inShape, std::vector<T> &out,
                     llvm::ArrayRef<int64_t> outShape, llvm::ArrayRef<int64_t> starts) {
  auto outStrides = getStrides(outShape);
  int64_t offset = 0;
  for (auto [stride, start] : llvm::zip_equal(outStrides, starts))
    offset += stride * start;
  forEachRow(inShape, offset, outStrides,
             [&](int64_t from, int64_t to, int64_t count) { std::copy_n(in.begin() + from, count, out.begin() + to); });
}

static void place(const Known &input, KnownStorage &out, llvm::ArrayRef<int64_t> outShape,
                  llvm::ArrayRef<int64_t> starts) {
  if (input->isBoolean())
    placeBox(input->getStorage().booleans, input->getShape(), out.booleans, outShape, starts);
  else if (input->isFloat())
    placeBox(input->getStorage().reals, input->getShape(), out.reals, outShape, starts);
  else
    placeBox(input->getStorage().integers, input->getShape(), out.integers, outShape, starts);
}

Known windlass::knownConcat(llvm::ArrayRef<Known> inputs, int64_t axis) {
  Shape shape(inputs[0]->getShape());
  shape[axis] = 0;
  for (const Known &input : inputs)
    shape[axis] += input->getShape()[axis];
  return makeKnown(RankedTensorType::get(shape, inputs[0]->getElementType()), [&](KnownStorage &out) {
    Shape starts(shape.size(), 0);
    for (const Known &input : inputs) {
      place(input, out, shape, starts);
      starts[axis] += input->getShape()[axis];
    }
  });
}

Known windlass::knownPad(const Known &input, llvm::ArrayRef<int64_t> low, llvm::ArrayRef<int64_t> high, double value) {
  Shape shape(input->getShape());
  for (auto [dim, before, after] : llvm::zip_equal(shape, low, high))
    dim += before + after;
  return makeKnown(RankedTensorType::get(shape, input->getElementType()), [&](KnownStorage &out) {
    llvm::fill(out.booleans, value != 0);
    llvm::fill(out.integers, toInteger(value));
    llvm::fill(out.reals, value);
    place(input, out, shape, low);
  });
}

template <typename T>
static void gatherBlocks(const std::vector<T> &in, std::vector<T> &out, const Known &indices, int64_t outer,
                         int64_t axisSize, int64_t inner) {
  int64_t to = 0;
  for (int64_t o = 0; o < outer; ++o)
    for (int64_t index : indices->getStorage().integers) {
      std::copy_n(in.begin() + (o * axisSize + index) * inner, inner, out.begin() + to);
      to += inner;
    }
}

Known windlass::knownGather(const Known &input, const Known &indices, int64_t axis) {
  llvm::ArrayRef<int64_t> in = input->getShape();
  Shape shape(in.take_front(axis));
  llvm::append_range(shape, indices->getShape());
  llvm::append_range(shape, in.drop_front(axis + 1));
  int64_t outer = 1, inner = 1;
  for (int64_t dim : in.take_front(axis))
    outer *= dim;
  for (int64_t dim : in.drop_front(axis + 1))
    inner *= dim;
  return makeKnown(RankedTensorType::get(shape, input->getElementType()), [&](KnownStorage &out) {
    gatherBlocks(input->getStorage().booleans, out.booleans, indices, input->isBoolean() ? outer : 0, in[axis], inner);
    gatherBlocks(input->getStorage().integers, out.integers, indices, input->isInteger() ? outer : 0, in[axis], inner);
    gatherBlocks(input->getStorage().reals, out.reals, indices, input->isFloat() ? outer : 0, in[axis], inner);
  });
}
