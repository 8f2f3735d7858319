// When values of a micro-batch take memory.
#ifndef WINDLASS_LIB_PLANNER_LIFETIMES_H
#define WINDLASS_LIB_PLANNER_LIFETIMES_H

#include "Groups.h"
#include "Reruns.h"

#include <functional>

namespace windlass::planner {

/// How many values of a group live in rows [begin, end), in parts of one.
struct LiveRun {
  int32_t begin = 0, end = 0;
  int64_t parts = 0;
  bool operator==(const LiveRun &other) const {
    return std::tie(begin, end, parts) == std::tie(other.begin, other.end, other.parts);
  }
};

/// Rows are the operators of `@microbatch` in program order, without those of repeats between the first and the last
/// one: what all repeats choose alike takes memory that is linear in their number there, so most at one of the ends.
class Lifetimes {
public:
  /// Where blocks are run again, what one makes for its own backward pass lives from the beginning of that again. With
  /// some of `rerunParts` run again, each row has that share of what it has with all, the rest of what it has with
  /// none. No choice of as many blocks or fewer takes less.
  Lifetimes(const Groups &groups, int rerunParts);

  int32_t getRows() const { return rows; }
  /// Of a result of a group's operators; empty where others are views of it or it is one itself: the value that is
  /// looked at counts then.
  std::vector<LiveRun> getRuns(unsigned group, unsigned result) const;
  /// The same for each label of the class of blocks that makes it, once where none does: such that rows take at least
  /// the sum of what the labels take, each times its share of the class's N blocks but one, whichever blocks choose
  /// which. Where the backward pass turns, N values live of which k are dropped when k blocks are run again, but the
  /// block whose turn it is has its own once more: what N - 1 blocks keep is counted there. Elsewhere it depends on
  /// which blocks choose what, so the least is.
  std::vector<std::vector<LiveRun>> getRunsByLabel(unsigned group, unsigned result, const Reruns &reruns) const;
  /// From the first to the last operator of the forward pass, and of the backward pass, that a parameter's members are
  /// read by: how long a gathered copy of it lives.
  std::vector<LiveRun> getReadRuns(unsigned group) const;

private:
  struct Interval {
    int64_t begin, end;
  };
  using Intervals = std::vector<Interval>;
  /// What is run again as one: a block, or a part of it. Without a block, what is kept.
  using Segment = std::pair<mlir::StringAttr, mlir::StringAttr>;
  /// What an operator's mark means where some blocks are run again.
  using FindSegment = std::function<Segment(plan::SegmentAttr)>;
  void findRows();
  void addUses(mlir::Value value, int64_t &lastForward, int64_t &lastBackward,
               llvm::SmallVectorImpl<plan::SegmentAttr> &readers) const;
  /// When a result of an operator lives.
  void addIntervals(mlir::Operation *op, unsigned result, const FindSegment &find, Intervals &intervals) const;
  /// How many values of a group live in each row.
  std::vector<int64_t> count(unsigned group, unsigned result, const FindSegment &find) const;
  std::vector<int64_t> countInRows(const Intervals &intervals) const;
  static std::vector<LiveRun> toRuns(const std::vector<int64_t> &partsInRows);

  const Groups &groups;
  int64_t rerunParts;
  int32_t rows = 0;
  llvm::DenseMap<mlir::Operation *, int64_t> positions;
  /// Of each position, the first row at it or behind it.
  std::vector<int32_t> rowAt;
  /// Where the backward pass of a block, or of a part of it, begins.
  std::map<std::pair<const void *, const void *>, int64_t> backwardBegin;
};

} // namespace windlass::planner

#endif
