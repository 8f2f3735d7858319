// Passes of the `sched` dialect.
#ifndef WINDLASS_DIALECT_SCHED_TRANSFORMS_PASSES_H
#define WINDLASS_DIALECT_SCHED_TRANSFORMS_PASSES_H

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Pass/Pass.h"
#include "windlass/Dialect/Sched/IR/SchedOps.h"

namespace windlass::sched {

#define GEN_PASS_DECL
#include "windlass/Dialect/Sched/Transforms/Passes.h.inc"

#define GEN_PASS_REGISTRATION
#include "windlass/Dialect/Sched/Transforms/Passes.h.inc"

} // namespace windlass::sched

#endif
