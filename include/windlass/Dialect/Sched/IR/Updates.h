// What optimizer steps work on.
#ifndef WINDLASS_DIALECT_SCHED_IR_UPDATES_H
#define WINDLASS_DIALECT_SCHED_IR_UPDATES_H

#include "windlass/Dialect/Sched/IR/SchedOps.h"

#include <optional>

namespace windlass::sched {

/// Operands that a kernel updates in place, its first ones and its first results: 3 of `adamw`, 2 of `sgd`, none of
/// others.
size_t getUpdatedOperands(llvm::StringRef kernel);

/// The operands of an optimizer step: `operands` of each of its parameters, of which the first `updated` are results
/// too, then scalars. A parameter has `results`, the last of them the rounded weight where there is one more.
struct UpdateOperands {
  size_t parameters, operands, updated, results;
  bool isRounded() const { return results > updated; }
  /// Of which operand result `out` takes the place; none of a rounded weight.
  std::optional<size_t> getOperandOf(size_t out) const;
};

/// None where the launch is no optimizer step, or has another number of operands.
std::optional<UpdateOperands> getUpdateOperands(LaunchOp launch);

} // namespace windlass::sched

#endif
