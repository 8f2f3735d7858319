// Fuses matrix products with the commands that follow them.
#ifndef WINDLASS_DIALECT_SCHED_TRANSFORMS_FUSEEPILOGUES_H
#define WINDLASS_DIALECT_SCHED_TRANSFORMS_FUSEEPILOGUES_H

#include "windlass/Dialect/Sched/IR/SchedOps.h"

namespace windlass::sched {

/// Replaces commands of a module at L5 by commands that do both, where `wants` says so of the new one, on the same
/// buffers:
/// - a product, and a map right after it that adds a bias to its columns, or that and another matrix, or that and the
///   tanh approximation of GELU in 16 bits, where the product's buffer holds the sum or, if nothing keeps that, the
///   result;
/// - a product, and the sum of one of its operands over what it contracts: the gradient of a bias.
/// What no order of commands and no memory forbids, that is: the earlier of the two moves to the later.
void fuseEpilogues(ProgramOp program, llvm::function_ref<bool(LaunchOp)> wants);

} // namespace windlass::sched

#endif
