// Norms as commands, with the sums before and behind them.
#ifndef WINDLASS_DIALECT_SCHED_IR_NORMS_H
#define WINDLASS_DIALECT_SCHED_IR_NORMS_H

#include "windlass/Dialect/Sched/IR/SchedOps.h"

#include <optional>

namespace windlass::sched {

/// How many of the first operands `add_layer_norm` and `add_rms_norm` add up: 2 or 3; 0 of other kernels.
size_t getNormTerms(LaunchOp launch);

/// The kernel that normalizes the sum only, of a launch that has terms.
llvm::StringRef getPlainNorm(LaunchOp launch);

/// The gradient of a norm: the operands of the `train` op, one more if it adds that to its first result.
struct NormGradOperands {
  size_t operands;
  bool addsOperand;
};
/// None where the launch is none, or has another number of operands.
std::optional<NormGradOperands> getNormGradOperands(LaunchOp launch);

/// Whether a launch that accumulates adds to that result: to all of them, of the gradient of a norm to those of its
/// parameters only.
bool addsToResult(LaunchOp launch, size_t out);

} // namespace windlass::sched

#endif
