// The kernels of L5 and the table of what the compiler knows of each (Kernels.def).
#ifndef WINDLASS_DIALECT_SCHED_IR_KERNELS_H
#define WINDLASS_DIALECT_SCHED_IR_KERNELS_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"

#include <array>
#include <cstdint>
#include <optional>

namespace mlir {
class Operation;
} // namespace mlir

namespace windlass::sched {

/// What a `sched.launch` runs.
enum class KernelKind : uint32_t {
#define KERNEL(name, ...) name,
#include "windlass/Dialect/Sched/IR/Kernels.def"
#undef KERNEL
};

/// Where commands of a kernel come from: a `train` operator of its name, another rule of sched-lower-to-commands, a
/// pass that puts commands together.
enum class KernelOrigin { op, lowering, fusion };

/// The results to which a command that accumulates adds. `sums`: all, and only where the setting `kind` is a sum;
/// `parameters`: all but the first.
enum class Accumulation { none, all, sums, parameters };

/// Whether a kernel goes through rows, which are fastest where their elements are adjacent. It takes others too.
enum class Rows { any, dense };

/// What a kernel moves: each operand once, of a table only what is chosen, of blocks only one.
enum class MovedBytes { operands, chosen, block };

/// Whether the settings of a kernel are part of what decides how long it takes.
enum class SettingsInKey { timed, untimed };

/// Which rule of the runtime says how much scratch a kernel needs (`*_scratch_bytes` of windlass/rt/kernels.h).
enum class ScratchRule { none, product, norm_grad, attention, attention_grad };

/// How the interpreter runs a kernel: as the `train` operator of its name, or by a rule of its own.
enum class KernelSemantics { op, own };

/// How many operands and results a launch has, and how many of its operands it adds up (0 of kernels without terms).
struct KernelArity {
  size_t operands, results, terms;
};

/// How many operands (or results) a kernel takes, from `least` to `most`.
struct OperandCounts {
  enum class Kind {
    plain,
    terms,      ///< after two or three terms
    parameters, ///< exactly `least` for each parameter, then `scalars`
  };
  Kind kind;
  unsigned least, most;
  unsigned scalars = 0, mostParameters = 0;
};

/// Which results may have the place of an operand. Terms count as operand 0, what follows them from 1 on; of a kernel
/// with parameters, operands and results count from each parameter's first.
struct InPlace {
  enum class Mode {
    may,
    must,
    dropped, ///< they may while there is no command yet; there is none then, as it would do nothing
  };
  struct Pair {
    unsigned operand, result;
  };
  std::array<Pair, 3> pairs;
  unsigned count;
  Mode mode;

  llvm::ArrayRef<Pair> getPairs() const { return llvm::ArrayRef(pairs).take_front(count); }
};

/// Floating-point operations; a multiply-add is two.
struct KernelFlops {
  enum class Kind {
    each,      ///< `count` for each element of the largest operand or result
    product,   ///< of matrices
    attention, ///< `count` products of tokens, keys and width, `query` being the number of the query among the operands
    updates,   ///< `count` for each element of the updated parameters
  };
  Kind kind;
  double count;
  unsigned query = 0;
};

/// What integers in the operands are below, so that they are valid indices.
struct IndexLimit {
  enum class Kind {
    unlimited,
    rows,    ///< the table's rows (the setting `all_rows`, where it has some of them only)
    axis,    ///< the size along the setting `axis`
    classes, ///< the size of the last dim
  };
  Kind kind;
  /// The number of the operand, or with `isResult` of the result, whose shape gives the limit.
  unsigned number = 0;
  bool isResult = false;
};

/// All that the compiler knows of a kernel.
struct KernelRow {
  KernelKind kind;
  llvm::StringLiteral name;
  KernelOrigin origin;
  OperandCounts operands, results;
  InPlace inPlace;
  Accumulation accumulation;
  Rows rows;
  KernelFlops flops;
  MovedBytes bytes;
  /// The kernel as which it is measured, and the one whose figures hold where none are known of that.
  KernelKind key;
  SettingsInKey settings;
  KernelKind family;
  IndexLimit indices;
  ScratchRule scratch;
  /// The runtime's function.
  llvm::StringLiteral entry;
  KernelSemantics semantics;
  bool isInNullBackend;
  /// Whether it runs on streams of kind host too.
  bool runsOnHost;

  bool isProduct() const { return flops.kind == KernelFlops::Kind::product; }
  /// Whether devices run it on their matrix units.
  bool multipliesMatrices() const { return isProduct() || flops.kind == KernelFlops::Kind::attention; }
  bool hasTerms() const { return operands.kind == OperandCounts::Kind::terms; }
  bool hasParameters() const { return operands.kind == OperandCounts::Kind::parameters; }
  /// Whether a command may accumulate, and whether it then adds to that result.
  bool canAccumulate() const { return accumulation != Accumulation::none; }
  bool addsTo(size_t result) const {
    return canAccumulate() && (result > 0 || accumulation != Accumulation::parameters);
  }

  /// Whether the kernel takes that many operands and gives that many results.
  bool takes(KernelArity arity) const;
  /// The parameters of a launch that `takes` accepts; 0 of kernels without.
  size_t countParameters(KernelArity arity) const;
  /// Whether a command may write result `result` over operand `operand`.
  bool mayWriteOver(KernelArity arity, size_t operand, size_t result) const;
  /// The same, or whether no command is needed then.
  bool mayShare(KernelArity arity, size_t operand, size_t result) const;
  /// The operand in whose place result `result` has to be; none where it may be elsewhere.
  std::optional<size_t> getReplaced(KernelArity arity, size_t result) const;
};

/// All rows, in the order of KernelKind.
llvm::ArrayRef<KernelRow> getKernelTable();
const KernelRow &getRow(KernelKind kind);

/// None where there is no kernel of that name.
std::optional<KernelKind> symbolizeKernelKind(llvm::StringRef name);
llvm::StringRef stringifyKernelKind(KernelKind kind);

/// The row of the kernel that computes a `train` operator, alone or with others; none where it has no kernel of its
/// name.
const KernelRow *findRow(mlir::Operation *op);

/// The kernel that adds terms up and then does what `kind` does; none where there is no such kernel.
std::optional<KernelKind> getKernelOfSum(KernelKind kind);

} // namespace windlass::sched

#endif
