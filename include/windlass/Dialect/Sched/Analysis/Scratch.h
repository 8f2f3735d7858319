// How much scratch the kernels of a program need.
#ifndef WINDLASS_DIALECT_SCHED_ANALYSIS_SCRATCH_H
#define WINDLASS_DIALECT_SCHED_ANALYSIS_SCRATCH_H

#include "windlass/Dialect/Sched/IR/SchedOps.h"

#include "windlass/rt/attention_shape.h"
#include "windlass/rt/kernels.h"

#include <optional>

namespace windlass::sched {

/// Returns the bytes of scratch that the kernel needs with `threads` threads, by the runtime's own `*_scratch_bytes`.
int64_t getScratchBytes(LaunchOp launch, int64_t threads);

/// Returns what a library must know about the attention that the command computes; none where the command computes no
/// attention, or one that libraries do not support.
std::optional<rt::attention_shape> getAttentionShape(LaunchOp launch);

/// Returns the settings that all experts of a layer share, for a command that computes the layer or its gradient.
rt::expert_layer getExpertLayer(LaunchOp launch);

/// Returns which operand of such a command holds the gate's matrices; none where the gate has no matrices of its own.
std::optional<unsigned> getExpertGate(LaunchOp launch);

/// Returns the most bytes of scratch that any command of the program (L5) needs per thread: `scratch_bytes` of the
/// emitted program.
int64_t getScratchBytesPerThread(ProgramOp program);

} // namespace windlass::sched

#endif
