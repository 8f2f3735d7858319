// What optimizer steps work on.
#ifndef WINDLASS_DIALECT_SCHED_IR_UPDATES_H
#define WINDLASS_DIALECT_SCHED_IR_UPDATES_H

#include "windlass/Dialect/Sched/IR/SchedOps.h"

namespace windlass::sched {

/// Operands that a kernel updates in place, its first ones and its first results: 3 of `adamw`, 2 of `sgd`, none of
/// others.
size_t getUpdatedOperands(llvm::StringRef kernel);

} // namespace windlass::sched

#endif
