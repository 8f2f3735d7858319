#include "windlass/Interpreter/Tensor.h"

#include "windlass/rt/detail/half.h"

#include <cmath>
#include <cstring>
#include <limits>

using namespace windlass;
using namespace windlass::interpreter;
using llvm::ArrayRef;

int64_t windlass::interpreter::bytesOf(ElementKind kind) {
  return dispatch(kind, [](auto zero) -> int64_t { return sizeof(zero); });
}

bool windlass::interpreter::isFloat(ElementKind kind) { return kind == ElementKind::f32 || kind == ElementKind::f64; }

llvm::StringRef windlass::interpreter::nameOf(ElementKind kind) {
  switch (kind) {
  case ElementKind::f32:
    return "f32";
  case ElementKind::f64:
    return "f64";
  case ElementKind::i64:
    return "i64";
  case ElementKind::i32:
    return "i32";
  case ElementKind::boolean:
    break;
  }
  return "i1";
}

std::optional<ElementKind> windlass::interpreter::kindOf(mlir::Type elementType, Precision precision) {
  bool isSingle = elementType.isF32() || elementType.isBF16() || elementType.isF16();
  if (elementType.isF64() || (isSingle && precision == Precision::f64))
    return ElementKind::f64;
  if (isSingle)
    return ElementKind::f32;
  if (elementType.isInteger(64))
    return ElementKind::i64;
  if (elementType.isInteger(32))
    return ElementKind::i32;
  if (elementType.isInteger(1))
    return ElementKind::boolean;
  return std::nullopt;
}

int64_t windlass::interpreter::elementsOf(ArrayRef<int64_t> shape) {
  int64_t elements = 1;
  for (int64_t size : shape)
    elements *= size;
  return elements;
}

llvm::SmallVector<int64_t, 4> windlass::interpreter::denseStrides(ArrayRef<int64_t> shape, int64_t unit) {
  llvm::SmallVector<int64_t, 4> strides(shape.size());
  for (size_t i = shape.size(); i-- > 0; unit *= shape[i])
    strides[i] = unit;
  return strides;
}

template <class T>
static void copyRow(std::byte *to, int64_t toStride, const std::byte *from, int64_t fromStride, int64_t count) {
  if (toStride == sizeof(T) && fromStride == sizeof(T)) {
    std::memcpy(to, from, count * sizeof(T));
    return;
  }
  for (int64_t i = 0; i < count; ++i)
    std::memcpy(to + i * toStride, from + i * fromStride, sizeof(T));
}

void windlass::interpreter::copyElements(std::byte *to, ArrayRef<int64_t> toStrides, const std::byte *from,
                                         ArrayRef<int64_t> fromStrides, ArrayRef<int64_t> sizes, int64_t elementBytes) {
  if (elementsOf(sizes) == 0)
    return;
  size_t outer = sizes.empty() ? 0 : sizes.size() - 1;
  int64_t count = sizes.empty() ? 1 : sizes.back();
  int64_t toStride = sizes.empty() ? elementBytes : toStrides.back();
  int64_t fromStride = sizes.empty() ? elementBytes : fromStrides.back();
  llvm::SmallVector<int64_t, 4> index(outer, 0);
  while (true) {
    if (elementBytes == 8)
      copyRow<uint64_t>(to, toStride, from, fromStride, count);
    else if (elementBytes == 4)
      copyRow<uint32_t>(to, toStride, from, fromStride, count);
    else
      copyRow<uint8_t>(to, toStride, from, fromStride, count);
    size_t dim = outer;
    while (dim > 0) {
      --dim;
      to += toStrides[dim];
      from += fromStrides[dim];
      if (++index[dim] < sizes[dim])
        break;
      to -= toStrides[dim] * sizes[dim];
      from -= fromStrides[dim] * sizes[dim];
      index[dim] = 0;
      if (dim == 0)
        return;
    }
    if (outer == 0)
      return;
  }
}

Tensor::Tensor(ElementKind kind, ArrayRef<int64_t> shape)
    : kind(kind), shape(shape.begin(), shape.end()), elements(elementsOf(shape)) {
  bytes = std::shared_ptr<std::byte[]>(new std::byte[elements * bytesOf(kind) + 1]());
}

Tensor Tensor::filled(ElementKind kind, ArrayRef<int64_t> shape, double value) {
  Tensor result(kind, shape);
  for (int64_t i = 0; i < result.elements; ++i)
    result.set(i, value);
  return result;
}

std::byte *Tensor::mutableData() {
  if (bytes.use_count() > 1) {
    std::shared_ptr<std::byte[]> own(new std::byte[getBytes() + 1]);
    std::memcpy(own.get(), bytes.get(), getBytes());
    bytes = std::move(own);
  }
  return bytes.get();
}

double Tensor::at(int64_t i) const {
  return dispatch(kind, [&](auto zero) { return static_cast<double>(values<decltype(zero)>()[i]); });
}

/// Converts a value to T; every double has a result.
template <class T> static T convert(double value) {
  if constexpr (std::is_same_v<T, bool>) {
    return value != 0;
  } else if constexpr (std::is_integral_v<T>) {
    if (std::isnan(value))
      return 0;
    if (value >= static_cast<double>(std::numeric_limits<T>::max()))
      return std::numeric_limits<T>::max();
    if (value <= static_cast<double>(std::numeric_limits<T>::min()))
      return std::numeric_limits<T>::min();
    return static_cast<T>(value);
  } else {
    return static_cast<T>(value);
  }
}

void Tensor::set(int64_t i, double value) {
  dispatch(kind, [&](auto zero) {
    using T = decltype(zero);
    mutableValues<T>()[i] = convert<T>(value);
  });
}

Tensor Tensor::reshaped(ArrayRef<int64_t> newShape) const {
  assert(elementsOf(newShape) == elements);
  Tensor result = *this;
  result.shape.assign(newShape.begin(), newShape.end());
  return result;
}

Tensor Tensor::cast(ElementKind to) const {
  if (to == kind)
    return *this;
  Tensor result(to, shape);
  dispatch(kind, [&](auto fromZero) {
    using From = decltype(fromZero);
    dispatch(to, [&](auto toZero) {
      using To = decltype(toZero);
      ArrayRef<From> in = values<From>();
      llvm::MutableArrayRef<To> out = result.mutableValues<To>();
      for (int64_t i = 0; i < elements; ++i) {
        // Integers convert directly: a double holds 53 bits of them only.
        if constexpr (std::is_floating_point_v<From>)
          out[i] = convert<To>(static_cast<double>(in[i]));
        else
          out[i] = static_cast<To>(in[i]);
      }
    });
  });
  return result;
}

bool Tensor::isSameAs(const Tensor &other) const {
  return kind == other.kind && shape == other.shape && std::memcmp(data(), other.data(), getBytes()) == 0;
}

void windlass::interpreter::roundTo(mlir::Type elementType, Tensor &tensor) {
  if ((!elementType.isBF16() && !elementType.isF16()) || tensor.getKind() != ElementKind::f32)
    return;
  for (float &value : tensor.mutableValues<float>())
    value =
        elementType.isBF16() ? static_cast<float>(rt::detail::bf16(value)) : static_cast<float>(rt::detail::f16(value));
}

void windlass::interpreter::roundDoublesTo(mlir::Type elementType, Tensor &tensor) {
  if (tensor.getKind() != ElementKind::f64 || elementType.isF64())
    return;
  Tensor single = tensor.cast(ElementKind::f32);
  roundTo(elementType, single);
  tensor = single.cast(ElementKind::f64);
}

void windlass::interpreter::roundDoublesToTf32(Tensor &tensor) {
  constexpr int bits = 11; // with the leading one, which is not stored
  for (double &value : tensor.mutableValues<double>()) {
    int exponent = 0;
    double fraction = std::frexp(value, &exponent);
    value = std::ldexp(std::nearbyint(std::ldexp(fraction, bits)), exponent - bits);
  }
}
