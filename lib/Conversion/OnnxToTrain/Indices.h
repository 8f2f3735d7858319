//===- Indices.h - what the dims of a value run over ------------*- C++ -*-===//
//
// A chain of primitives that computes one thing may order, merge, divide and repeat the dims of its values in many
// ways. Whoever follows the chain back from its end names the indices, such as the token and the expert, and these
// functions tell which of them each dim of an operand runs over.
//
//===----------------------------------------------------------------------===//

#ifndef WINDLASS_LIB_CONVERSION_ONNXTOTRAIN_INDICES_H
#define WINDLASS_LIB_CONVERSION_ONNXTOTRAIN_INDICES_H

#include "windlass/Dialect/Train/IR/TrainOps.h"

#include "llvm/ADT/SmallVector.h"

#include <optional>

namespace windlass {

/// `size` values of an index, `stride` apart.
struct IndexPart {
  unsigned index;
  int64_t size, stride;

  bool operator==(const IndexPart &other) const {
    return index == other.index && size == other.size && stride == other.stride;
  }
};

/// The parts that a dim runs over, the slowest first; none where its size is 1.
using DimIndices = llvm::SmallVector<IndexPart, 2>;

/// Returns what a dim of all values of an index runs over.
DimIndices wholeIndex(unsigned index, int64_t size);

/// A value, and what each of its dims runs over.
struct IndexedValue {
  mlir::Value value;
  llvm::SmallVector<DimIndices> dims;
  /// The number of steps back that are left; a limit, so that long chains in a file take little time.
  int steps = 32;

  /// Returns the parts of all dims in their order; those that follow each other are joined.
  DimIndices flatten() const;
};

/// Replaces the result of a reshape, a transpose or a broadcast by its operand. False where the value is something
/// else, where the operand's dims run over parts that cannot be told apart, or where no steps are left.
bool stepBack(IndexedValue &value);

/// Steps back as far as it goes.
IndexedValue stepBackAll(IndexedValue value);

/// Returns the operands of a product whose result has the dims `dims`; the contracted dim runs over `contracted`.
/// Nothing where not exactly one dim is contracted.
std::optional<std::pair<IndexedValue, IndexedValue>> findFactors(train::MatmulOp op, llvm::ArrayRef<DimIndices> dims,
                                                                 unsigned contracted);

/// A sum over an index with `size` values of products of two factors.
struct SumOfProducts {
  IndexedValue lhs, rhs;
  int64_t size;
};

/// Matches a sum over one dim, which then runs over `summed`: a matrix product, or the sum of an element-wise product.
std::optional<SumOfProducts> findSumOfProducts(const IndexedValue &sum, unsigned summed);

} // namespace windlass

#endif // WINDLASS_LIB_CONVERSION_ONNXTOTRAIN_INDICES_H
