// What it takes to run blocks of the forward pass again, as the search counts it.
#ifndef WINDLASS_LIB_PLANNER_RERUNS_H
#define WINDLASS_LIB_PLANNER_RERUNS_H

#include "Groups.h"

#include "windlass/Dialect/Plan/Transforms/Segments.h"

namespace windlass::planner {

/// Of all blocks, so many parts may have their forward pass run again in the backward pass.
constexpr int kRerunParts = 2;

/// Of each operator group, how many of its members are run again.
using RerunCounts = std::vector<int64_t>;

/// Blocks that repeat, and what all of them may choose alike.
struct RerunClass {
  std::vector<plan::SegmentBlock> blocks;
  /// plan::kKeptLabel first.
  std::vector<std::string> labels;
  /// Of operator groups, by label, how many members are run again where all blocks of the class choose it and no other
  /// block runs again.
  std::map<unsigned, std::vector<int64_t>> counts;
};

class Reruns {
public:
  explicit Reruns(const Groups &groups);

  const std::vector<RerunClass> &getClasses() const { return classes; }
  /// The class that a block belongs to; nothing for what is in no block.
  std::optional<unsigned> getClass(plan::SegmentAttr segment) const;
  /// The one that all members of a group belong to.
  std::optional<unsigned> getClass(const OperatorGroup &group) const;
  /// Where so many of `kRerunParts` of all blocks are run again, each as one.
  RerunCounts count(int rerunParts) const;

private:
  std::vector<RerunClass> classes;
  llvm::DenseMap<mlir::StringAttr, unsigned> classOf;
  size_t groupCount;
};

/// What the strategies of the operators say.
RerunCounts countChosenReruns(const Groups &groups);

} // namespace windlass::planner

#endif
