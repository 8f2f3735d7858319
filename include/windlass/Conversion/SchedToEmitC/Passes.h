// Level L5 to level L6.
#ifndef WINDLASS_CONVERSION_SCHEDTOEMITC_PASSES_H
#define WINDLASS_CONVERSION_SCHEDTOEMITC_PASSES_H

#include "mlir/Dialect/EmitC/IR/EmitC.h"
#include "mlir/Pass/Pass.h"
#include "windlass/Dialect/Sched/IR/SchedOps.h"

namespace windlass {

#define GEN_PASS_DECL
#include "windlass/Conversion/SchedToEmitC/Passes.h.inc"

#define GEN_PASS_REGISTRATION
#include "windlass/Conversion/SchedToEmitC/Passes.h.inc"

} // namespace windlass

#endif
