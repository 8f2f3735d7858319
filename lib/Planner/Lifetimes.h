// When values of a micro-batch take memory.
#ifndef WINDLASS_LIB_PLANNER_LIFETIMES_H
#define WINDLASS_LIB_PLANNER_LIFETIMES_H

#include "Groups.h"

namespace windlass::planner {

/// Of all blocks, so many parts may have their forward pass run again in the backward pass.
constexpr int kRerunParts = 2;

/// How many values of a group live in rows [begin, end), in parts of one.
struct LiveRun {
  int32_t begin = 0, end = 0;
  int64_t parts = 0;
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
  /// From the first to the last operator of the forward pass, and of the backward pass, that a parameter's members are
  /// read by: how long a gathered copy of it lives.
  std::vector<LiveRun> getReadRuns(unsigned group) const;

private:
  struct Interval {
    int64_t begin, end;
  };
  using Intervals = std::vector<Interval>;
  void findRows();
  void addUses(mlir::Value value, int64_t &lastForward, int64_t &lastBackward,
               llvm::SmallVectorImpl<mlir::StringAttr> &blocks) const;
  /// When a result of an operator lives where all blocks are run again, or none.
  void addIntervals(mlir::Operation *op, unsigned result, bool rerunsBlocks, Intervals &intervals) const;
  std::vector<int64_t> countInRows(const Intervals &intervals) const;
  static std::vector<LiveRun> toRuns(const std::vector<int64_t> &partsInRows);

  const Groups &groups;
  int64_t rerunParts;
  int32_t rows = 0;
  llvm::DenseMap<mlir::Operation *, int64_t> positions;
  /// Of each position, the first row at it or behind it.
  std::vector<int32_t> rowAt;
  /// Where the backward pass of a block begins.
  llvm::DenseMap<mlir::StringAttr, int64_t> backwardBegin;
};

} // namespace windlass::planner

#endif
