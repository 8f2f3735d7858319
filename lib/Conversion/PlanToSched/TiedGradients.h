// The gradients of weights that several positions read.
#ifndef WINDLASS_LIB_CONVERSION_PLANTOSCHED_TIEDGRADIENTS_H
#define WINDLASS_LIB_CONVERSION_PLANTOSCHED_TIEDGRADIENTS_H

#include "ChunkFlow.h"

namespace windlass::sched {

/// Lets each position accumulate its own part of the gradient of a weight that operators of several positions read,
/// instead of sending it to a position that adds up all parts: the parts are added once a step, when gradients are
/// reduced. `backward` says which chunk makes what, and `positionOf` the position of each chunk; the function changes,
/// so that its flow must be assigned anew. A gradient whose parts pass through an operator that is not linear in them
/// stays as it is.
void splitTiedGradients(const ChunkFlow &backward, llvm::ArrayRef<int64_t> positionOf);

} // namespace windlass::sched

#endif
