// Level L3b to level L4.
#ifndef WINDLASS_CONVERSION_PLANTOSCHED_PASSES_H
#define WINDLASS_CONVERSION_PLANTOSCHED_PASSES_H

#include "mlir/Pass/Pass.h"
#include "windlass/Dialect/Sched/IR/SchedOps.h"

namespace windlass::sched {

#define GEN_PASS_DECL
#include "windlass/Conversion/PlanToSched/Passes.h.inc"

#define GEN_PASS_REGISTRATION
#include "windlass/Conversion/PlanToSched/Passes.h.inc"

} // namespace windlass::sched

#endif
