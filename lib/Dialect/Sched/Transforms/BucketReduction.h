// The reduction of gradients, bucket by bucket, beside the last backward of a step.
#ifndef WINDLASS_LIB_DIALECT_SCHED_TRANSFORMS_BUCKETREDUCTION_H
#define WINDLASS_LIB_DIALECT_SCHED_TRANSFORMS_BUCKETREDUCTION_H

#include "ProgramLowering.h"

namespace windlass::sched {

/// Places the reduction of a chunk's buckets and the commands of `reduce`, which are the rest of its `@reduce`, among
/// and behind those of `backward`, its backward: each collective at the first border of a repeated block behind the
/// last command that uses its buffer. Commands among those of the backward run in the last backward of a step only;
/// commands behind it, with the waits for all collectives, belong to `@reduce`.
std::vector<Command> composeReduction(ProgramLowering &program, std::vector<Command> backward,
                                      std::vector<Command> reduce, int64_t chunk, mlir::Location loc);

} // namespace windlass::sched

#endif
