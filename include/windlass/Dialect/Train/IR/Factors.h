// The iteration dimensions of an operator, by which it may be split.
#ifndef WINDLASS_DIALECT_TRAIN_IR_FACTORS_H
#define WINDLASS_DIALECT_TRAIN_IR_FACTORS_H

#include "windlass/Dialect/Train/IR/TrainEnums.h"

#include "llvm/ADT/SmallVector.h"

#include <cstdint>
#include <optional>
#include <string>

namespace windlass::train {

enum class FactorKind {
  /// A split gives each rank its part of the result.
  Parallel,
  /// Summed (or maximised) over: a split leaves results that do not carry the factor unreduced over the axis; results
  /// that carry it (a norm's dx, besides its dscale) are split.
  Reduction,
  /// Reduced inside the operator and used again (softmax row, norm row). A split is done by
  /// `plan-decompose-split-reductions`, with the operator's InnerReductionOpInterface; results that do not carry the
  /// factor are whole then. At most one factor of an operator is taken apart in this way.
  Inner,
  /// May not be split.
  Replicated,
  /// All elements of the operator's tensors, in any order: no dim has it. A split flattens a rank's local slice, fills
  /// it with zeros to equal ranges and gives each member one; a result without dims is a sum over the members. Only
  /// operators that keep zeros zero have it. At most one factor of an operator is of this kind.
  Flat,
};

struct Factor {
  std::string name;
  int64_t size = 1;
  FactorKind kind = FactorKind::Parallel;
  /// The reduction that combines partial results where kind is Reduction.
  ReductionKind reduction = ReductionKind::sum;
  /// The number with which an uneven last part of an operand is filled so that results stay right; none: uneven splits
  /// are refused.
  std::optional<double> padding = std::nullopt;
  /// Whether operators look up along it, so that ranks must know which part is theirs: a split is done like that of
  /// kind Inner, and leaves results as its own kind says.
  bool isLookedUp = false;

  /// How many elements of its neighbours each part reads, or adds to, where windows move along it. A split is done like
  /// that of kind Inner, too, and leaves results as its own kind says.
  double halo = 0;
  /// The least size of a part: the rows that its neighbours read on both sides are different ones.
  int64_t leastPart = 1;

  /// Whether `plan-decompose-split-reductions` splits it.
  bool isTakenApart() const { return kind == FactorKind::Inner || isLookedUp || halo > 0; }
};

/// The factors of one dimension, major to minor, whose sizes multiply to the dimension's size. Empty for a dim that no
/// factor drives (size 1).
using DimFactors = llvm::SmallVector<unsigned, 2>;
/// The factors of each dimension of an operand or result.
using ValueFactors = llvm::SmallVector<DimFactors, 4>;

struct OpFactors {
  llvm::SmallVector<Factor, 4> factors;
  llvm::SmallVector<ValueFactors, 4> operands;
  llvm::SmallVector<ValueFactors, 2> results;
  /// The sets of operands that may be unreduced (sum) over one axis together, which leaves every result unreduced over
  /// it: all operands of an add, one operand of a product, either operand of a matmul.
  llvm::SmallVector<llvm::SmallVector<unsigned, 2>, 2> unreducedTogether;

  /// Adds a factor and returns its index.
  unsigned add(std::string name, int64_t size, FactorKind kind = FactorKind::Parallel);
  /// Returns the factor of kind Flat; nothing where there is none.
  std::optional<unsigned> findFlat() const;
};

/// The arithmetic and the memory traffic of one execution.
struct OpCost {
  double flops = 0;
  double bytes = 0;
};

/// The precision in which an operator works where storage types are narrower than f32.
enum class PrecisionClass {
  Any,         ///< runs in the storage type (moves, element-wise)
  Contraction, ///< reads the storage type, accumulates in f32
  Full,        ///< computes in f32: losses, norms' statistics, optimizer
  Index,       ///< integers and booleans only
};

} // namespace windlass::train

#endif
