// Which products of a program the device's library computes together with what follows them.
#ifndef WINDLASS_PROFILE_KERNELS_CHOOSEEPILOGUES_H
#define WINDLASS_PROFILE_KERNELS_CHOOSEEPILOGUES_H

#include "windlass/Dialect/Sched/IR/SchedOps.h"
#include "windlass/Profile/Profile.h"

namespace windlass {

/// Fuses those commands of a program at L5 that the library computes together: all that it takes, but for those that
/// `measured` (may be null) says two kernels compute faster, in the first micro-batch of a step or in later ones.
void chooseEpilogues(sched::ProgramOp program, const ProductChoices *measured);

} // namespace windlass

#endif
