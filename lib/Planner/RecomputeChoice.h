// The choice of what is recomputed, as a part of the problem.
#ifndef WINDLASS_LIB_PLANNER_RECOMPUTECHOICE_H
#define WINDLASS_LIB_PLANNER_RECOMPUTECHOICE_H

#include "RangePrices.h"

namespace windlass::planner {

/// The memory that a value takes where that depends on the label of its class of blocks.
struct ChosenMemory {
  /// The node whose label gives the value's layout.
  int32_t source;
  unsigned recomputeClass;
  /// The bytes by label of `source`.
  std::vector<int64_t> bytes;
  /// The runs by label of the class.
  std::vector<std::vector<LiveRun>> runs;
  /// Whether it is the memory of the first chunk, which has a choice of its own.
  bool isOfFirst = false;
};

/// Adds, to a problem whose tables are filled, a node for each class of blocks, whose labels are the class's; a node
/// for each group whose operators may be recomputed; and a node for the memory of each value of `memory`. The latter
/// two kinds of nodes have a label for each distinct case of the node that they belong to, so that tables stay small.
/// The number of a group's node is that of the group.
///
/// Where `lifetimes` has a row of the first chunk of a cut model, its blocks have such nodes of their own. Nothing
/// links the two choices: that for all blocks pays in the sums over all positions, that of the first chunk on paths.
void addRecomputeChoice(ProblemBuilder &builder, RangePrices &prices, const Groups &groups,
                        const RecomputeClasses &recompute, const Lifetimes &lifetimes,
                        const std::vector<ChosenMemory> &memory);

} // namespace windlass::planner

#endif
