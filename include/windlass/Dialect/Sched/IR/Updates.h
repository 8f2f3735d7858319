// What optimizer steps work on.
#ifndef WINDLASS_DIALECT_SCHED_IR_UPDATES_H
#define WINDLASS_DIALECT_SCHED_IR_UPDATES_H

#include "windlass/Dialect/Sched/IR/SchedOps.h"

#include <optional>

namespace windlass::sched {

/// The operands of an optimizer step: `operands` of each of its parameters, of which the first `updated` are results
/// too, then scalars. A parameter has `results`, the last of them the rounded weight where there is one more.
struct UpdateOperands {
  size_t parameters, operands, updated, results;
  bool isRounded() const { return results > updated; }
};

/// None where the launch is no optimizer step.
std::optional<UpdateOperands> getUpdateOperands(LaunchOp launch);

} // namespace windlass::sched

#endif
