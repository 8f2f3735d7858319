// What is recomputed, as a choice of the problem itself.
#ifndef WINDLASS_LIB_PLANNER_RECOMPUTECHOICE_H
#define WINDLASS_LIB_PLANNER_RECOMPUTECHOICE_H

#include "Labels.h"
#include "ProblemBuilder.h"

namespace windlass::planner {

/// What a value takes in memory where that depends on what its class of blocks chooses.
struct ChosenMemory {
  /// The node whose label gives the value's layout.
  int32_t source;
  unsigned recomputeClass;
  /// By label of `source`.
  std::vector<int64_t> bytes;
  /// By label of the class.
  std::vector<std::vector<LiveRun>> runs;
};

/// Adds to a problem whose tables are filled a node for each class of blocks, whose labels are the class's, one for
/// each group whose operators may be recomputed, and one for the memory of each value of `memory`. The latter two have
/// a label for each that differs of the node that they belong to, so that tables stay small. The number of a group's
/// node is that of the group.
void addRecomputeChoice(ProblemBuilder &builder, const RecomputeClasses &recompute, const Labels &labels,
                        const std::vector<ChosenMemory> &memory);

} // namespace windlass::planner

#endif
