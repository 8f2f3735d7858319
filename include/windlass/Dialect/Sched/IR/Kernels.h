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

/// The origin of a kernel's commands: a `train` operator of its name, another rule of sched-lower-to-commands, or a
/// pass that fuses commands.
enum class KernelOrigin { op, lowering, fusion };

/// The results to which a command that accumulates adds. `sums`: all, and only where the setting `kind` is a sum;
/// `parameters`: all but the first; `matrices`: all but the first two.
enum class Accumulation { none, all, sums, parameters, matrices };

/// Whether a kernel goes through rows, which are fastest where their elements are adjacent. It takes rows with strides
/// too.
enum class Rows { any, dense };

/// The bytes that a kernel moves: each operand once, only the chosen rows of a table, or only one block.
enum class MovedBytes { operands, chosen, block };

/// Whether the settings of a kernel are part of what decides how long it takes.
enum class SettingsInKey { timed, untimed };

/// The rule of the runtime that says how much scratch a kernel needs (`*_scratch_bytes` of windlass/rt/kernels.h).
enum class ScratchRule { none, product, convolution, norm_grad, attention, attention_grad, experts, experts_grad };

/// How the interpreter runs a kernel: as the `train` operator of its name, or by a rule of its own.
enum class KernelSemantics { op, own };

/// The numbers of operands and results of a launch, and of the operands that it adds up (0 for kernels without terms).
struct KernelArity {
  size_t operands, results, terms;
};

/// The number of operands (or results) that a kernel takes, from `least` to `most`.
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

/// The results that may have the place of an operand. All terms count as operand 0, the operands behind them from 1 on;
/// for a kernel with parameters, operands and results count from each parameter's first.
struct InPlace {
  enum class Mode {
    may,
    must,
    dropped, ///< they may before the command is made; no command is made then, because it would do nothing
  };
  struct Pair {
    unsigned operand, result;
  };
  std::array<Pair, 3> pairs;
  unsigned count;
  Mode mode;

  llvm::ArrayRef<Pair> getPairs() const { return llvm::ArrayRef(pairs).take_front(count); }
};

/// An operand or a result.
struct BufferNumber {
  unsigned number = 0;
  bool isResult = false;
};

/// Floating-point operations; a multiply-add is two.
struct KernelFlops {
  enum class Kind {
    each,        ///< `count` for each element of the largest operand or result
    operands,    ///< `count` for each element of all operands
    product,     ///< of matrices
    convolution, ///< `count` for each element of `convolved` and each element of a kernel of `weight`
    attention, ///< `count` products of tokens, keys and width, `query` being the number of the query among the operands
    experts,   ///< `count` products by the first matrix of each chosen expert, and `downs` by its second
    updates,   ///< `count` for each element of the updated parameters
  };
  Kind kind;
  double count;
  /// The number of the query, or of the experts' input, among the operands.
  unsigned query = 0;
  /// The result of a convolution, or its gradient, and the weight, or its gradient.
  BufferNumber convolved = {}, weight = {};
  /// The products by the second matrix of a chosen expert.
  double downs = 0;
};

/// The limit below which integers in the operands are valid indices.
struct IndexLimit {
  enum class Kind {
    unlimited,
    rows,    ///< the table's rows, or the experts (the setting `all_rows`, where there are some of them only)
    axis,    ///< the size along the setting `axis`
    classes, ///< the size of the last dim
  };
  Kind kind;
  /// The number of the operand, or with `isResult` of the result, whose shape gives the limit.
  unsigned number = 0;
  bool isResult = false;
};

/// The facts that the compiler knows about a kernel.
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
  /// The kernel under whose name it is measured (`family`: the kernel whose figures hold where `key` has none).
  KernelKind key;
  SettingsInKey settings;
  KernelKind family;
  IndexLimit indices;
  ScratchRule scratch;
  /// The runtime's function.
  llvm::StringLiteral entry;
  KernelSemantics semantics;
  bool isInNullBackend;
  /// Whether it also runs on streams of kind `host`.
  bool runsOnHost;

  bool isProduct() const { return flops.kind == KernelFlops::Kind::product; }
  /// Whether devices run it on their matrix units.
  bool multipliesMatrices() const {
    return isProduct() || flops.kind == KernelFlops::Kind::convolution || flops.kind == KernelFlops::Kind::attention ||
           flops.kind == KernelFlops::Kind::experts;
  }
  bool hasTerms() const { return operands.kind == OperandCounts::Kind::terms; }
  bool hasParameters() const { return operands.kind == OperandCounts::Kind::parameters; }
  /// Whether a command may accumulate, and whether it then adds to that result.
  bool canAccumulate() const { return accumulation != Accumulation::none; }
  bool addsTo(size_t result) const {
    unsigned first = accumulation == Accumulation::matrices ? 2 : accumulation == Accumulation::parameters ? 1 : 0;
    return canAccumulate() && result >= first;
  }

  /// Whether the kernel takes the numbers of operands, results and terms of `arity`.
  bool takes(KernelArity arity) const;
  /// Returns the number of parameters of a launch that `takes` accepts; 0 for kernels without parameters.
  size_t countParameters(KernelArity arity) const;
  /// Whether a command may write result `result` over operand `operand`.
  bool mayWriteOver(KernelArity arity, size_t operand, size_t result) const;
  /// Whether `mayWriteOver` holds, or the launch needs no command when both have one place.
  bool mayShare(KernelArity arity, size_t operand, size_t result) const;
  /// Returns the operand in whose place result `result` must be; none where it may be elsewhere.
  std::optional<size_t> getReplaced(KernelArity arity, size_t result) const;
};

/// Returns all rows, in the order of KernelKind.
llvm::ArrayRef<KernelRow> getKernelTable();
const KernelRow &getRow(KernelKind kind);

/// Returns the kernel of that name; none where there is no such kernel.
std::optional<KernelKind> symbolizeKernelKind(llvm::StringRef name);
llvm::StringRef stringifyKernelKind(KernelKind kind);

/// Returns the row of the kernel that computes a `train` operator, alone or with others; null where no kernel has its
/// name.
const KernelRow *findRow(mlir::Operation *op);

/// Returns the kernel that adds terms up and then computes what `kind` computes; none where there is no such kernel.
std::optional<KernelKind> getKernelOfSum(KernelKind kind);

} // namespace windlass::sched

#endif
