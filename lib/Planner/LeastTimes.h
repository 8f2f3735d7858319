// The least time that operators take under any schedule: what bounds of a step may count.
#ifndef WINDLASS_LIB_PLANNER_LEASTTIMES_H
#define WINDLASS_LIB_PLANNER_LEASTTIMES_H

#include "Labels.h"
#include "LeastTraffic.h"

namespace windlass::planner {

/// A lower bound of the time of the commands that an operator becomes, whatever passes fuse.
///
/// An operator with a kernel of its own counts its FLOPs and the bytes that no fusion saves, and a launch. Element-wise
/// functions become maps that are fused with each other and with norms, so they count no launch and only
/// - one reading of each value that a function of the same pass reads at its first reader, where a kernel has made the
///   value, or has to run between what makes it and the reader,
/// - the writing of each result that a kernel reads.
/// A norm may compute the sum that it reads, and its gradient may add to the gradient that it makes, so these values
/// are not read again there. Losses are computed with their gradients. Operators whose inner reduction is split become
/// several, of which only what they read and write for certain counts.
///
/// Where the library of the devices computes products with epilogues, an operator that may be one (`Epilogues.h`)
/// counts nothing.
///
/// Where the model is cut into chunks, wherever the cuts are, each chunk computes for itself what follows from inputs
/// alone, and each position adds up its own part of the gradient of a weight that several positions read. So neither
/// the reading of such values by element-wise functions nor the sums of gradients count then.
class LeastTimes {
public:
  /// `isCut` says whether the model is cut into chunks. Refers to `groups` and `labels`, which outlive this object.
  LeastTimes(const Groups &groups, const Labels &labels, const CostModel &costs, plan::MeshAttr mesh, bool isCut);

  /// Returns the picoseconds of an operator of the group, by label.
  const std::vector<int64_t> &get(unsigned group) const { return times[group]; }
  /// Returns the same for a recomputed copy, by label. A copy of an element-wise function may be fused with its reader.
  const std::vector<int64_t> &getRecomputed(unsigned group) const { return recomputed[group]; }
  /// Whether nothing but gradients of parameters depends on the group's operators.
  bool isWeightGradient(unsigned group) const { return isForWeights[group]; }
  /// Whether the group's operators run behind all operators of repeated blocks.
  bool isTrailing(unsigned group) const { return isBehindBlocks[group]; }

  /// Returns the first operator that reads a value, directly or through a stash; null where none does.
  mlir::Operation *getFirstReader(mlir::Value value) const;
  /// Whether no operator that counts stands between the maker of a value and its first reader. With
  /// `skipsWeightGradients`, those that only gradients of parameters depend on do not matter.
  bool isReadNext(mlir::OpResult value, bool skipsWeightGradients) const;
  /// Whether operators may be recomputed between the maker of a value of the backward pass and its first reader, which
  /// it has: they are right before an operator that reads a stash.
  bool mayRecomputeBefore(mlir::OpResult value) const;
  /// Whether an operator of a use is the first reader of a value.
  bool readsFirst(mlir::OpResult value, const Use &use) const;

private:
  /// Adds an operator's times by label; `traffic` is that of all members of the group.
  void addTimes(unsigned group, std::optional<Traffic> traffic, const CostModel &costs);
  void findWeightGradients();
  void findPositions();

  const Groups &groups;
  const Labels &labels;
  plan::MeshAttr mesh;
  bool isCut;
  /// The operators that each chunk may compute for itself; empty where the model is not cut.
  Operators copied;
  std::vector<std::vector<int64_t>> times, recomputed;
  std::vector<bool> isForWeights, isBehindBlocks;
  /// The position of each operator in the function, and the number of operators that count, and of those that count and
  /// are not for weights only, at positions before it.
  struct Position {
    int64_t index, before, chainBefore;
  };
  llvm::DenseMap<mlir::Operation *, Position> positions;
};

} // namespace windlass::planner

#endif
