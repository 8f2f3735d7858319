// The last backward pass of a step together with the reduction of gradients.
#ifndef WINDLASS_LIB_DIALECT_SCHED_TRANSFORMS_BACKWARDREDUCE_H
#define WINDLASS_LIB_DIALECT_SCHED_TRANSFORMS_BACKWARDREDUCE_H

#include "Program.h"

namespace windlass::sched {

/// `backward` with the collectives of the buckets and those of `reduce`, the lowered rest of `@reduce`, each as soon as
/// its gradients are complete. What waits for a collective of `@reduce` stands at the end.
std::vector<Command> composeBackwardReduce(Program &program, std::vector<Command> backward, std::vector<Command> reduce,
                                           mlir::Location loc);

} // namespace windlass::sched

#endif
