// Which attentions of a program the device's library computes.
#ifndef WINDLASS_PROFILE_KERNELS_CHOOSEATTENTIONS_H
#define WINDLASS_PROFILE_KERNELS_CHOOSEATTENTIONS_H

#include "windlass/Dialect/Sched/IR/SchedOps.h"
#include "windlass/Profile/Profile.h"

#include "windlass/rt/attention_shape.h"

#include <vector>

namespace windlass {

/// Returns the attentions of a program at L5 that the device's library computes: all that it takes, but for those that
/// `measured` (may be null) says our own kernels compute faster; each shape once, in the order of the commands. Their
/// workspace is the measured one or, where nothing was measured, what `library_workspace_bytes` says.
std::vector<rt::attention_choice> chooseAttentions(sched::ProgramOp program, const AttentionChoices *measured);

} // namespace windlass

#endif
