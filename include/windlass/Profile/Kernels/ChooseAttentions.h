// Which attentions of a program the device's library computes.
#ifndef WINDLASS_PROFILE_KERNELS_CHOOSEATTENTIONS_H
#define WINDLASS_PROFILE_KERNELS_CHOOSEATTENTIONS_H

#include "windlass/Dialect/Sched/IR/SchedOps.h"
#include "windlass/Profile/Profile.h"

#include "windlass/rt/attention_shape.h"

#include <vector>

namespace windlass {

/// Returns the attentions of a program at L5 that the library was measured to compute faster than the own kernels, each
/// shape once, in the order of the commands. An attention that needs more than `mostWorkspaceBytes` stays with the own
/// kernels.
std::vector<rt::attention_choice> chooseAttentions(sched::ProgramOp program, const AttentionChoices &measured,
                                                   int64_t mostWorkspaceBytes);

} // namespace windlass

#endif
