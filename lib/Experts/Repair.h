// Makes a placement good enough for new loads while few replicas move.
#ifndef WINDLASS_LIB_EXPERTS_REPAIR_H
#define WINDLASS_LIB_EXPERTS_REPAIR_H

#include "Assignment.h"

#include "windlass/Support/WorkBudget.h"

#include <optional>

namespace windlass::experts {

/// The slot of a replica of an expert that belongs to the problem no longer.
constexpr int32_t kGone = -1;

/// Looks for a placement whose largest load is at most `limit` and that differs little from `before`, in which slots
/// may be `kGone`. It goes two ways: from what was there towards the limit, and from `good`, a placement within it,
/// back to what was there; of both it returns the placement that moves fewer replicas.
Placement repair(const FlatProblem &problem, const Placement &before, const Placement &good, double limit,
                 WorkBudget &budget);

/// Exchanges the GPUs of a placement, or the nodes of one of groups, so that little moves from `before`.
Placement matchGpus(int32_t gpus, const Placement &before, const Placement &placement);

} // namespace windlass::experts

#endif
