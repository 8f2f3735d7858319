//===- Known.h - tensors whose values the importer knows --------*- C++ -*-===//
//
// Exporters write shapes, axes, positions and masks as chains of ordinary operators over constants. The legalization
// evaluates those chains on these tensors; everything here is plain row-major arithmetic without broadcasting tricks.
//
//===----------------------------------------------------------------------===//

#ifndef WINDLASS_LIB_CONVERSION_ONNXTOTRAIN_KNOWN_H
#define WINDLASS_LIB_CONVERSION_ONNXTOTRAIN_KNOWN_H

#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinTypes.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/SmallVector.h"

#include <cstdint>
#include <memory>
#include <vector>

namespace windlass {

using Shape = llvm::SmallVector<int64_t>;

/// The values of a tensor, of one of three kinds: booleans in `booleans` (0 or 1), integers of any width in `integers`,
/// floats of any width, rounded to it, in `reals`.
struct KnownStorage {
  std::vector<uint8_t> booleans;
  std::vector<int64_t> integers;
  std::vector<double> reals;
};

class KnownTensor {
public:
  KnownTensor(mlir::RankedTensorType type, std::shared_ptr<const KnownStorage> storage);

  mlir::RankedTensorType type;
  std::shared_ptr<const KnownStorage> storage;
  /// The number of the tensor, different for any two tensors ever made, so that results can be looked up by their
  /// operands.
  int64_t id;

  llvm::ArrayRef<int64_t> getShape() const { return type.getShape(); }
  mlir::Type getElementType() const { return type.getElementType(); }
  int64_t getSize() const { return type.getNumElements(); }
  bool isBoolean() const { return getElementType().isInteger(1); }
  bool isFloat() const { return mlir::isa<mlir::FloatType>(getElementType()); }
  bool isInteger() const { return !isBoolean() && !isFloat(); }

  double getReal(int64_t index) const;
  int64_t getInteger(int64_t index) const;
  /// Whether all elements are equal (also true for no elements).
  bool isSplat() const;
};

using Known = std::shared_ptr<const KnownTensor>;

/// Returns the element type in which values of a file's element type are computed: f32 for floats of 16 bits, because a
/// precision is chosen when the model is compiled; null for null.
mlir::Type getComputedType(mlir::Type elementType);

/// Returns `value` as a tensor of `elementType` holds it: wrapped or rounded. Reals of integer types are left as they
/// are.
int64_t wrapInteger(int64_t value, mlir::Type elementType);
double roundReal(double value, mlir::Type elementType);
/// Returns the integer part. Values out of range, which are undefined in C++ and in ONNX, saturate here, and NaN gives
/// 0.
int64_t toInteger(double value);

/// Returns a tensor of the given type whose storage `fill` writes.
Known makeKnown(mlir::RankedTensorType type, llvm::function_ref<void(KnownStorage &)> fill);
Known makeKnown(mlir::DenseElementsAttr value);
/// Reads a tensor from little-endian packed bytes; booleans are one byte. Both functions give elements of the computed
/// type.
Known makeKnown(mlir::RankedTensorType type, llvm::ArrayRef<char> bytes);
Known makeKnownIntegers(mlir::MLIRContext *context, llvm::ArrayRef<int64_t> values);
Known makeKnownSplat(mlir::RankedTensorType type, double value);

llvm::SmallVector<int64_t> getStrides(llvm::ArrayRef<int64_t> shape);

enum class BinaryKind { add, sub, mul, div, pow, max, min, mod, bitAnd, bitOr, bitXor };
enum class CompareKind { equal, notEqual, less, lessEqual, greater, greaterEqual };
enum class UnaryKind {
  neg,
  abs,
  logicalNot,
  isNan,
#define WINDLASS_REAL_FUNCTION(Class, name, ...) name,
#include "windlass/Dialect/Train/IR/RealFunctions.def"
};
enum class ReduceKind { sum, max, min };

// The operands of the element-wise functions broadcast to `shape`.
Known knownUnary(UnaryKind kind, const Known &input);
Known knownBinary(BinaryKind kind, const Known &lhs, const Known &rhs, llvm::ArrayRef<int64_t> shape);
Known knownCompare(CompareKind kind, const Known &lhs, const Known &rhs, llvm::ArrayRef<int64_t> shape);
Known knownSelect(const Known &condition, const Known &lhs, const Known &rhs, llvm::ArrayRef<int64_t> shape);
Known knownCast(const Known &input, mlir::Type elementType);

Known knownReshape(const Known &input, llvm::ArrayRef<int64_t> shape);
Known knownTranspose(const Known &input, llvm::ArrayRef<int64_t> permutation);
/// Returns `input` broadcast to `shape`, which must be possible.
Known knownBroadcast(const Known &input, llvm::ArrayRef<int64_t> shape);
/// Returns the tensor with result[i] = input[starts + i * steps]; the box must be inside of `input`.
Known knownSlice(const Known &input, llvm::ArrayRef<int64_t> starts, llvm::ArrayRef<int64_t> sizes,
                 llvm::ArrayRef<int64_t> steps);
Known knownConcat(llvm::ArrayRef<Known> inputs, int64_t axis);
Known knownPad(const Known &input, llvm::ArrayRef<int64_t> low, llvm::ArrayRef<int64_t> high, double value);
/// Returns the elements at `indices`, which must be in [0, size of the axis).
Known knownGather(const Known &input, const Known &indices, int64_t axis);
/// Returns the reduction of `input`, without the reduced dims.
Known knownReduce(ReduceKind kind, const Known &input, llvm::ArrayRef<int64_t> dims);
Known knownCumSum(const Known &input, int64_t axis, bool isExclusive, bool isReverse);

} // namespace windlass

#endif // WINDLASS_LIB_CONVERSION_ONNXTOTRAIN_KNOWN_H
