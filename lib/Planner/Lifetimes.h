// When values of a micro-batch take memory.
#ifndef WINDLASS_LIB_PLANNER_LIFETIMES_H
#define WINDLASS_LIB_PLANNER_LIFETIMES_H

#include "Groups.h"
#include "RecomputeClasses.h"

#include <functional>

namespace windlass::planner {

class ChunkLabels;

/// The amount of a group's values that lives in the rows [begin, end): `parts` times one `kRecomputeParts`th of a
/// value.
struct LiveRun {
  int32_t begin = 0, end = 0;
  int64_t parts = 0;
  bool operator==(const LiveRun &other) const {
    return std::tie(begin, end, parts) == std::tie(other.begin, other.end, other.parts);
  }
};

/// The values that live while each operator runs. A row stands for an operator of the range, in program order.
/// Operators of repeats between the first and the last one have no rows: what all repeats choose alike takes memory
/// that is linear in their number, so it is greatest at one of the ends.
///
/// Each row counts the values of the micro-batch whose operator runs, and of each other micro-batch in flight the
/// stash: the values that live when its forward pass has ended and its backward pass has not begun.
class Lifetimes {
public:
  /// Computes the rows with `recomputeParts` of `kRecomputeParts` parts of the blocks recomputed. The values that a
  /// recomputed block makes for its own backward pass live from where that begins. Each row has `recomputeParts` parts
  /// of what it has where all blocks are recomputed, and the rest of what it has where none is: no choice of as many
  /// blocks or fewer takes less. `inFlight`, the number of micro-batches in flight, is at least 1.
  Lifetimes(const Groups &groups, const RecomputeClasses &recompute, int recomputeParts, double inFlight);
  /// Makes lifetimes with a single row, which nothing is recomputed in: the moment at which the forward pass of a
  /// micro-batch has ended and its backward pass has not begun. The row counts the micro-batch's stash and no more.
  ///
  /// Where `inFlight` is above 0, a second row counts what the first chunk of a cut model keeps of that number of
  /// micro-batches for its own backward passes. `labels` says which operators it runs, and outlives this object.
  static Lifetimes ofStash(const Groups &groups, const RecomputeClasses &recompute, const ChunkLabels *labels = nullptr,
                           int64_t inFlight = 0);

  int32_t getRows() const { return hasStashOnly ? (hasFirst() ? 2 : 1) : rows; }
  /// Whether there is a row of the first chunk.
  bool hasFirst() const { return firstInFlight > 0; }
  /// Returns when the results `result` of a group's operators live. Returns nothing where other values are views of
  /// them or they are views themselves: the viewed value counts then.
  std::vector<LiveRun> getRuns(unsigned group, unsigned result) const;
  /// Returns when a value of the border lives: from its first use in the range on.
  std::vector<LiveRun> getBorderRuns(mlir::Value value) const;
  /// Returns the same for each label of the class of blocks that makes the values; once where no class makes them. Rows
  /// take at least the sum over the labels of what a label takes times its share of the class's N blocks but one,
  /// whichever blocks choose which label. Where the backward pass begins, N values live, of which k are dropped when k
  /// blocks are recomputed, but the block whose backward pass runs has its own once more: the N - 1 blocks that are
  /// kept or dropped count there. Elsewhere the amount depends on which blocks choose what, so the least is taken.
  std::vector<std::vector<LiveRun>> getRunsByLabel(unsigned group, unsigned result) const;
  std::vector<std::vector<LiveRun>> getBorderRunsByLabel(mlir::Value value) const;
  /// Returns the same, by label of the class that makes the values, for the row of the first chunk. It is linear in the
  /// shares of the blocks of which the first chunk runs all operators, but one; those that it shares with another chunk
  /// count what they keep in any case.
  std::vector<std::vector<LiveRun>> getRunsOfFirst(unsigned group, unsigned result) const;
  /// Returns the number of a class's blocks of which the first chunk runs all operators that may be recomputed.
  int64_t countFirstBlocks(unsigned recomputeClass) const;
  /// Returns how many of a group's operators the first chunk runs.
  int64_t countOnFirst(unsigned group) const;
  /// Returns how many of a group's parameters only the first chunk reads.
  int64_t countParametersOnFirst(unsigned group) const;
  /// Returns when a gathered copy of a parameter lives: from the first to the last operator that reads a member in the
  /// forward pass, and likewise in the backward pass. It is not in the row of the stash.
  std::vector<LiveRun> getReadRuns(unsigned group) const;

private:
  /// Positions in the function, both included.
  struct Interval {
    int64_t begin, end;
  };
  using Intervals = std::vector<Interval>;
  /// A part that is recomputed as one: a block, or a part of a block. Without a block, a part that is kept.
  using RecomputedPart = std::pair<mlir::StringAttr, mlir::StringAttr>;
  /// Finds the recomputed part that an operator's mark stands for where some blocks are recomputed.
  using FindPart = std::function<RecomputedPart(plan::SegmentAttr)>;
  /// The number of values that live in each row, and behind these the number that are in a micro-batch's stash.
  using Counts = std::vector<int64_t>;
  using CountValues = std::function<Counts(const FindPart &)>;

  void findRows();
  /// Whether an operator is a compute operator that is not in the range.
  bool isOutside(mlir::Operation *op) const;
  /// The positions where a value or a view of it is read, and the blocks of the forward pass that read it.
  struct Reads {
    int64_t first = INT64_MAX, lastForward = -1, lastBackward = -1;
    llvm::SmallVector<plan::SegmentAttr> readers;
  };
  /// Adds the reads of a value, which is itself a stash where `isStashed`.
  void addReads(mlir::Value value, bool isStashed, Reads &reads) const;
  /// Adds the intervals in which a value lives that is made at position `made`, in the part `own`; where `made` is
  /// negative it comes over the border for its first use.
  void addIntervals(mlir::Value value, int64_t made, const RecomputedPart &own, const FindPart &find,
                    Intervals &intervals) const;
  /// Whether no other chunk than the first one reads a value, not even to recompute something.
  bool isOfFirst(mlir::Value value) const;
  Counts count(unsigned group, unsigned result, const FindPart &find, bool countsFirst = false) const;
  Counts countBorder(mlir::Value value, const FindPart &find) const;
  Counts countInRows(const Intervals &intervals) const;
  /// Returns the runs, and those by label, of values that `countValues` counts.
  std::vector<LiveRun> makeRuns(const CountValues &countValues) const;
  std::vector<std::vector<LiveRun>> makeRunsByLabel(const CountValues &countValues, std::optional<unsigned> own) const;
  /// Counts by label of the class `own`, linear in the shares of `others` blocks; the least of all labels once where
  /// there is no class, or `others` is negative.
  std::vector<Counts> countByLabel(const CountValues &countValues, std::optional<unsigned> own, int64_t others) const;
  std::vector<LiveRun> toRuns(Counts counts) const;

  const Groups &groups;
  const RecomputeClasses &recompute;
  int64_t recomputeParts;
  double inFlight;
  /// Whether there is no row but that of the stash.
  bool hasStashOnly = false;
  const ChunkLabels *chunkLabels = nullptr;
  int64_t firstInFlight = 0;
  int32_t rows = 0;
  llvm::DenseMap<mlir::Operation *, int64_t> positions;
  /// By position, the first row at it or behind it.
  std::vector<int32_t> rowAt;
  /// The position of the first operator of the backward pass.
  int64_t turn = INT64_MAX;
  /// The positions where the backward pass of each block, and of each part of it, begins.
  std::map<std::pair<const void *, const void *>, int64_t> backwardBegin;
};

} // namespace windlass::planner

#endif
