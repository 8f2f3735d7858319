// What every schedule of a plan takes at least: the prices of the problem whose bound is claimed.
#ifndef WINDLASS_LIB_PLANNER_BOUNDPRICES_H
#define WINDLASS_LIB_PLANNER_BOUNDPRICES_H

#include "CutStep.h"
#include "LeastTimes.h"
#include "ProblemNodes.h"
#include "RangePrices.h"

namespace windlass::planner {

/// A kind of work of a step that lower bounds of the step tell apart.
enum class StepWork : uint32_t {
  forward = 1 << 0,
  /// Backward passes before the last one, and the last one; without the work below.
  backwardBefore = 1 << 1,
  lastBackward = 1 << 2,
  /// Operators that only gradients of parameters depend on.
  weightsBefore = 1 << 3,
  lastWeights = 1 << 4,
  /// Operators of the last backward pass behind all repeated blocks.
  trailing = 1 << 5,
  /// Reshards for which the next operator waits, and those beside which only gradients of weights are computed.
  awaitedReshard = 1 << 6,
  reshardBesideWeights = 1 << 7,
  /// Reductions of the gradients of the last micro-batch, of those that trailing operators make among them, and of
  /// those before.
  lastReduction = 1 << 8,
  trailingReduction = 1 << 9,
  reductionBefore = 1 << 10,
  gather = 1 << 11,
  squares = 1 << 12,
  update = 1 << 13,
  updateGather = 1 << 14,
  /// Additions of gradients on the host, copies of weights from there and of gradients there, and the time for which
  /// these have the host's memory to themselves.
  hostAddition = 1 << 15,
  fetch = 1 << 16,
  gradientCopy = 1 << 17,
  hostMemory = 1 << 18,
  /// What the update has the host compute, its disk read and write, and copies move, behind the backward pass.
  hostUpdate = 1 << 19,
  diskUpdate = 1 << 20,
  toHostUpdate = 1 << 21,
  toDeviceUpdate = 1 << 22,
  hostMemoryUpdate = 1 << 23,
  /// The same of updates beside the backward pass, and the gathers behind these.
  hostEarly = 1 << 24,
  diskEarly = 1 << 25,
  toHostEarly = 1 << 26,
  toDeviceEarly = 1 << 27,
  hostMemoryEarly = 1 << 28,
  gatherEarly = 1 << 29,
};

/// Lower bounds of a step as sums of work that no schedule runs at the same time. They hold for the schedules that
/// `sched-lower-to-commands` makes, with their order of operators:
/// - The compute stream runs all operators, one after the other.
/// - An operator that waits for a reshard begins no earlier than that long after the maker. Where no operator that
///   counts stands between, the stream is idle for it; operators that stand between do not count then.
/// - Reductions of the last micro-batch's gradients begin when all operators before the last backward pass have run.
/// - One communicator carries all collectives of parameters and gradients, one after the other.
/// - Reductions of gradients that operators behind all blocks make begin behind the blocks.
/// The compute stream sums up the squares of all gradients before it updates the first weight, so the update comes on
/// top of the longest of these, and takes as long as the optimizer or the gathers of the updated weights. The host
/// adds up gradients, one after the other, and updates weights behind all of that. One stream copies weights to the
/// device. CPU ranks do one thing at a time, so
/// all work adds up.
///
/// The problem of a pipeline of S positions bounds S times its step. The sum over all positions of what each of them
/// takes at least is no more than that, and so is S times the length of a path through the step (`CutChain`):
/// - The compute stream of a position runs its operators, one after the other, and waits for reshards as above where
///   maker and reader are in one call of a chunk.
/// - A call of a chunk begins on the compute stream when the calls before it on the path have ended there.
/// - Reductions of the last micro-batch's gradients of a chunk begin when its last backward pass does or later.
/// - One communicator of a position carries all collectives of its parameters and gradients, one after the other.
/// - The update of a position comes on top. It counts what each position updates at least, S times.
class BoundPrices : public RangePrices {
public:
  /// `overlaps` says whether collectives run at the same time as operators; `cut` is the step of a pipeline, or null.
  /// Refers to its arguments, which outlive this object.
  BoundPrices(const Groups &groups, const Labels &labels, Reshards &reshards, const LeastTimes &least,
              const std::vector<ParameterCosts> &parameterCosts, bool overlaps, const CutStep *cut,
              ProblemBuilder &builder);

  /// Returns the windows that a problem with these prices has; none where all work adds up.
  static StepWindows makeWindows(const Groups &groups, bool overlaps, const CutStep *cut);

  void addOperators(int32_t node, unsigned group, int64_t recomputed) override;
  std::vector<int64_t> getRecomputeTimes(unsigned group) const override { return least.getRecomputed(group); }
  void addRecompute(int32_t node, const std::vector<ProblemBuilder::Work> &works) override;
  void addRecomputeOfFirst(int32_t node, const std::vector<ProblemBuilder::Work> &works) override;
  void addParameters(int32_t node, unsigned group) override;
  int64_t getStashCost(int64_t count, mlir::RankedTensorType type, plan::LayoutAttr layout) override { return 0; }
  void addReshards(int32_t from, int32_t to, const ReshardSite &site, const EdgeLayouts &layouts) override;
  void addArgument(const ReshardSite &site, plan::LayoutAttr layout) override;
  void addGradients(int32_t from, int32_t to, unsigned parameter, int64_t count,
                    const std::vector<plan::LayoutAttr> &found) override;

private:
  /// Adds nanoseconds of work by label to a node.
  void addWork(int32_t node, StepWork work, std::vector<int64_t> nanoseconds);
  /// Adds the time of a pass that every micro-batch runs, `works` by label.
  void addPasses(int32_t node, StepWork before, StepWork last, const std::vector<ProblemBuilder::Work> &works);
  /// Returns the streams that carry a kind of work, without those of chains of the cut.
  std::vector<int32_t> getStreams(StepWork work) const;
  /// Calls `add` with the stream of each chain of the cut, if there is one.
  void forEachChain(llvm::function_ref<void(int32_t, const CutChain &)> add) const;
  /// Adds the runs of a group's operators on the chains of the cut.
  void addRuns(int32_t node, unsigned group);
  /// Adds what the chains of the cut count of a parameter group.
  void addToChains(int32_t node, unsigned group, const std::vector<int64_t> &squares,
                   const std::vector<int64_t> &lastReductions);
  /// Returns how many members of a parameter group count in the update.
  int64_t countUpdated(unsigned group) const;
  /// Returns the values that a site reshards and whose reshards count: those of first readers, in the call of a chunk
  /// that makes the value.
  std::vector<mlir::OpResult> findReshards(const ReshardSite &site) const;
  /// The values whose reshards count.
  struct CountedReshards {
    /// Those for which the next operator waits, and those of them beside which operators may be recomputed.
    std::vector<mlir::OpResult> awaited, besideRecompute;
    /// Those beside which only gradients of weights are computed.
    std::vector<mlir::OpResult> besideWeights;
  };
  CountedReshards sortReshards(const std::vector<mlir::OpResult> &values) const;
  /// Returns the streams that carry reshards, and how often they do.
  std::vector<ProblemBuilder::Carrier> getCarriers(const CountedReshards &values) const;

  const Groups &groups;
  const Labels &labels;
  Reshards &reshards;
  const LeastTimes &least;
  const std::vector<ParameterCosts> &parameterCosts;
  bool overlaps;
  const CutStep *cut;
  bool usesHost;
  ProblemBuilder &builder;
  /// The parameter groups all of whose gradients trailing operators make.
  std::vector<bool> isTrailing;
};

} // namespace windlass::planner

#endif
