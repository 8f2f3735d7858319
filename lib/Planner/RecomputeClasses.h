// The cost of recomputing blocks of the forward pass, as the search counts it.
#ifndef WINDLASS_LIB_PLANNER_RECOMPUTECLASSES_H
#define WINDLASS_LIB_PLANNER_RECOMPUTECLASSES_H

#include "Counterparts.h"
#include "Groups.h"

#include "windlass/Dialect/Plan/Transforms/Segments.h"

namespace windlass::planner {

/// The number of equal parts of the blocks: the search recomputes 0, 1, .. or all `kRecomputeParts` of them.
constexpr int kRecomputeParts = 2;

/// The number of recomputed members of each operator group.
using RecomputeCounts = std::vector<int64_t>;

/// A class of blocks that repeat, and the labels of which all of them may choose one.
struct RecomputeClass {
  std::vector<plan::SegmentBlock> blocks;
  /// The labels of a block (`plan::SegmentBlock::getLabels`); plan::kKeptLabel is the first.
  std::vector<std::string> labels;
  /// The number of recomputed members by operator group and label, where all blocks of the class have that label and no
  /// other block is recomputed.
  std::map<unsigned, std::vector<int64_t>> counts;
};

/// The blocks of a range by class. Blocks that are not in the range as a whole are not recomputed.
class RecomputeClasses {
public:
  explicit RecomputeClasses(const Groups &groups);

  const std::vector<RecomputeClass> &getClasses() const { return classes; }
  /// Returns the class that a block belongs to; nothing for an operator in no block.
  std::optional<unsigned> getClass(plan::SegmentAttr segment) const;
  /// Returns the class that all members of a group belong to; nothing where there is none.
  std::optional<unsigned> getClass(const OperatorGroup &group) const;
  /// Counts the recomputed members where `parts` of `kRecomputeParts` parts of all blocks are recomputed, each block as
  /// one.
  RecomputeCounts count(int parts) const;

private:
  std::vector<RecomputeClass> classes;
  llvm::DenseMap<mlir::StringAttr, unsigned> classOf;
  size_t groupCount;
};

/// Counts the members that the strategies of a copy of the module at L3 recompute.
RecomputeCounts countChosenRecompute(const Groups &groups, const Counterparts &planned);

} // namespace windlass::planner

#endif
