//===- Known.h - tensors whose values the importer knows --------*- C++ -*-===//
//
// Exporters write shapes, axes, positions and masks as chains of ordinary operators over constants. The legalization
// evaluates those chains on these tensors, by plain row-major arithmetic.
//
//===----------------------------------------------------------------------===//

#ifndef WINDLASS_LIB_CONVERSION_ONNXTOTRAIN_KNOWN_H
#define WINDLASS_LIB_CONVERSION_ONNXTOTRAIN_KNOWN_H

#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/Support/LLVM.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/SmallVector.h"

#include <cstdint>
#include <memory>
#include <optional>
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

class KnownTensor;
using Known = std::shared_ptr<const KnownTensor>;

class KnownTensor {
public:
  KnownTensor(mlir::RankedTensorType type, std::shared_ptr<const KnownStorage> storage);
  /// Makes a view of a stored tensor: element [i...] is element offset + sum(i * strides) of it. All elements of the
  /// source are seen. Those of the view are stored when somebody asks for them.
  KnownTensor(mlir::RankedTensorType type, Known source, int64_t offset, Shape strides);

  mlir::RankedTensorType type;
  /// The number of the tensor, different for any two tensors ever made, so that results can be looked up by their
  /// operands.
  int64_t id;

  llvm::ArrayRef<int64_t> getShape() const { return type.getShape(); }
  mlir::Type getElementType() const { return type.getElementType(); }
  int64_t getSize() const { return type.getNumElements(); }
  bool isBoolean() const { return getElementType().isInteger(1); }
  bool isFloat() const { return mlir::isa<mlir::FloatType>(getElementType()); }
  bool isInteger() const { return !isBoolean() && !isFloat(); }

  /// Returns all elements. Those of a view are stored at the first call.
  const KnownStorage &getStorage() const { return *share(); }
  std::shared_ptr<const KnownStorage> share() const;
  /// Returns the tensor that this one is a view of; null where it is none.
  const Known &getSource() const { return source; }
  int64_t getViewOffset() const { return offset; }
  llvm::ArrayRef<int64_t> getViewStrides() const { return strides; }
  double getReal(int64_t index) const;
  int64_t getInteger(int64_t index) const;
  /// Whether all elements are equal (also true for no elements).
  bool isSplat() const;

private:
  static int64_t nextId();
  /// Returns the index of the source's element that element `index` is.
  int64_t findInSource(int64_t index) const;

  mutable std::shared_ptr<const KnownStorage> storage;
  Known source;
  int64_t offset = 0;
  Shape strides;
};

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

/// Returns the broadcast of two shapes by ONNX's rule, or failure.
mlir::FailureOr<Shape> broadcastShapes(llvm::ArrayRef<int64_t> lhs, llvm::ArrayRef<int64_t> rhs);
/// Whether a tensor may be a view; others are stored.
bool mayBeView(mlir::Type elementType, int64_t elements);
/// Whether a view stays one where it is reshaped: dims of size 1 come and go.
bool keepsView(const KnownTensor &input, llvm::ArrayRef<int64_t> shape);
/// Returns what `compute` gives, element by element, for operands broadcast to `shape`. Where they are views, it is
/// called for the elements that they have, and the result is a view too.
Known computeEach(llvm::ArrayRef<Known> operands, llvm::ArrayRef<int64_t> shape,
                  llvm::function_ref<Known(llvm::ArrayRef<Known>, llvm::ArrayRef<int64_t>)> compute);
/// Returns for how many elements it would be called.
int64_t countComputed(llvm::ArrayRef<Known> operands, llvm::ArrayRef<int64_t> shape);
/// The elements of a tensor that depend on the place in the dim `columns` minus that in the dim `rows` only, from the
/// last row's first one to the first row's last one.
struct Diagonals {
  Known list;
  int64_t rows, columns;
};
std::optional<Diagonals> findDiagonals(const KnownTensor &tensor);
/// Returns a matrix of booleans that says for each element whether its column minus its row is inside.
Known makeBand(mlir::MLIRContext *context, int64_t rows, int64_t columns, llvm::function_ref<bool(int64_t)> isInside);
/// Whether one operand is a row and the other one a column, of integers with the same steps: what a comparison of both
/// gives depends on the difference of column and row only.
bool areRanges(const KnownTensor &lhs, const KnownTensor &rhs);

llvm::SmallVector<int64_t> getStrides(llvm::ArrayRef<int64_t> shape);
/// Returns the number of elements of a shape; 2^48 where there are more.
int64_t countSaturated(llvm::ArrayRef<int64_t> shape);
/// Calls `row(outIndex, inOffset, count)` for every innermost row of a strided view of `shape`.
void forEachRow(llvm::ArrayRef<int64_t> shape, int64_t offset, llvm::ArrayRef<int64_t> strides,
                llvm::function_ref<void(int64_t, int64_t, int64_t)> row);

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
