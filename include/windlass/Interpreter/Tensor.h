// A dense tensor that owns its values: what the interpreter computes with.
#ifndef WINDLASS_INTERPRETER_TENSOR_H
#define WINDLASS_INTERPRETER_TENSOR_H

#include "mlir/IR/BuiltinTypes.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"

#include <cassert>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>

namespace windlass::interpreter {

enum class ElementKind { f32, f64, i64, i32, boolean };

/// The type in which the floats of a program are computed. f64 replaces every float type by double.
enum class Precision { f32, f64 };

int64_t bytesOf(ElementKind kind);
bool isFloat(ElementKind kind);
llvm::StringRef nameOf(ElementKind kind);
/// Returns the kind that stands for an element type; nothing for types that the interpreter does not compute with. bf16
/// and f16 are held as f32 whose values are rounded.
std::optional<ElementKind> kindOf(mlir::Type elementType, Precision precision);

template <class T> constexpr ElementKind kKindOf = ElementKind::f32;
template <> inline constexpr ElementKind kKindOf<double> = ElementKind::f64;
template <> inline constexpr ElementKind kKindOf<int64_t> = ElementKind::i64;
template <> inline constexpr ElementKind kKindOf<int32_t> = ElementKind::i32;
template <> inline constexpr ElementKind kKindOf<bool> = ElementKind::boolean;

/// Calls `function` with a value of the C++ type of `kind`.
template <class Function> decltype(auto) dispatch(ElementKind kind, Function &&function) {
  switch (kind) {
  case ElementKind::f32:
    return function(float());
  case ElementKind::f64:
    return function(double());
  case ElementKind::i64:
    return function(int64_t());
  case ElementKind::i32:
    return function(int32_t());
  case ElementKind::boolean:
    break;
  }
  return function(bool());
}

/// Calls `function` with a value of the C++ type of a float kind; every other kind counts as f32 (callers have
/// checked).
template <class Function> decltype(auto) dispatchFloat(ElementKind kind, Function &&function) {
  if (kind == ElementKind::f64)
    return function(double());
  return function(float());
}

/// The row-major values of a shape. Copies share their bytes until one of them is written.
class Tensor {
public:
  Tensor() : Tensor(ElementKind::f32, {}) {}
  /// Makes a tensor of zeros.
  Tensor(ElementKind kind, llvm::ArrayRef<int64_t> shape);
  static Tensor filled(ElementKind kind, llvm::ArrayRef<int64_t> shape, double value);

  ElementKind getKind() const { return kind; }
  llvm::ArrayRef<int64_t> getShape() const { return shape; }
  int64_t getRank() const { return static_cast<int64_t>(shape.size()); }
  int64_t getElements() const { return elements; }
  int64_t getBytes() const { return elements * bytesOf(kind); }

  const std::byte *data() const { return bytes.get(); }
  std::byte *mutableData();
  template <class T> llvm::ArrayRef<T> values() const {
    assert(kKindOf<T> == kind);
    return llvm::ArrayRef<T>(reinterpret_cast<const T *>(data()), elements);
  }
  template <class T> llvm::MutableArrayRef<T> mutableValues() {
    assert(kKindOf<T> == kind);
    return llvm::MutableArrayRef<T>(reinterpret_cast<T *>(mutableData()), elements);
  }

  double at(int64_t i) const;
  void set(int64_t i, double value);
  /// Returns the same values under a shape with as many elements.
  Tensor reshaped(llvm::ArrayRef<int64_t> newShape) const;
  /// Returns the values converted to another kind. Float to integer truncates (and saturates; NaN gives 0); everything
  /// to boolean tests for non-zero.
  Tensor cast(ElementKind to) const;
  bool isSameAs(const Tensor &other) const;

private:
  ElementKind kind;
  llvm::SmallVector<int64_t, 4> shape;
  int64_t elements;
  std::shared_ptr<std::byte[]> bytes;
};

/// Rounds f32 values to the nearest of a narrower element type, ties to even; leaves all others as they are.
void roundTo(mlir::Type elementType, Tensor &tensor);
/// Rounds doubles as a program that computed them in f32 and stores them: to f32, then to the element type.
void roundDoublesTo(mlir::Type elementType, Tensor &tensor);
/// Rounds doubles to 10 bits of mantissa, ties to even.
void roundDoublesToTf32(Tensor &tensor);

/// Returns the product of the sizes.
int64_t elementsOf(llvm::ArrayRef<int64_t> shape);
/// Returns row-major strides in units of `unit`.
llvm::SmallVector<int64_t, 4> denseStrides(llvm::ArrayRef<int64_t> shape, int64_t unit);
/// Copies elements of `elementBytes` bytes between two windows of one shape; strides are in bytes and may be 0 on the
/// source.
void copyElements(std::byte *to, llvm::ArrayRef<int64_t> toStrides, const std::byte *from,
                  llvm::ArrayRef<int64_t> fromStrides, llvm::ArrayRef<int64_t> sizes, int64_t elementBytes);

} // namespace windlass::interpreter

#endif
