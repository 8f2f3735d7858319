// The operands and results of optimizer steps.
#ifndef WINDLASS_DIALECT_SCHED_IR_UPDATES_H
#define WINDLASS_DIALECT_SCHED_IR_UPDATES_H

#include "windlass/Dialect/Sched/IR/SchedOps.h"

#include <optional>

namespace windlass::sched {

/// The numbers that describe an optimizer step: it updates `parameters` parameters and takes `operands` operands for
/// each, of which the first `updated` are results too, then scalars. It has `results` results for each parameter, the
/// last of which is the rounded weight where `results` exceeds `updated`.
struct UpdateOperands {
  size_t parameters, operands, updated, results;
  bool isRounded() const { return results > updated; }
};

/// Returns the numbers for an optimizer step; none where the launch is another kernel.
std::optional<UpdateOperands> getUpdateOperands(LaunchOp launch);

} // namespace windlass::sched

#endif
