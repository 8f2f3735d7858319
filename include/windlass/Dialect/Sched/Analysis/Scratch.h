// How much scratch the kernels of a program need.
#ifndef WINDLASS_DIALECT_SCHED_ANALYSIS_SCRATCH_H
#define WINDLASS_DIALECT_SCHED_ANALYSIS_SCRATCH_H

#include "windlass/Dialect/Sched/IR/SchedOps.h"

#include "windlass/rt/attention_shape.h"

#include <optional>

namespace windlass::sched {

/// Bytes of scratch that the kernel needs with that many threads: what the runtime's own `*_scratch_bytes` say.
int64_t getScratchBytes(LaunchOp launch, int64_t threads);

/// What a library has to know of the attention that the command computes; none where it computes another thing, or what
/// libraries do not.
std::optional<rt::attention_shape> getAttentionShape(LaunchOp launch);

/// The most that any command of the program (L5) needs per thread: `scratch_bytes` of the emitted program.
int64_t getScratchBytesPerThread(ProgramOp program);

} // namespace windlass::sched

#endif
