// Trials of the plans that the search finds: schedules of which the one with the shortest simulated step is kept.
#ifndef WINDLASS_LIB_PIPELINE_SCHEDULETRIALS_H
#define WINDLASS_LIB_PIPELINE_SCHEDULETRIALS_H

#include "FitMemory.h"

#include "windlass/Planner/ChoosePlan.h"

#include <cmath>
#include <map>
#include <set>

namespace windlass {

/// Schedules plans, and keeps the one whose step is shortest when it is simulated.
class ScheduleTrials {
public:
  /// The most plans of one call of `schedule`, which are scheduled side by side with any number of threads, so that
  /// this does not change what is kept.
  static constexpr int kAtOnce = 2;

  ScheduleTrials(mlir::ModuleOp module, const planner::PlanSearch &plans, const PlanChoice &choice,
                 const CostModel &costs, double mustBeat)
      : module(module), plans(plans), choice(choice), costs(costs), mustBeat(mustBeat),
        positions(choice.pipeline.positions) {}

  /// Plans copies of the module by candidates that were taken, and schedules them.
  mlir::LogicalResult schedule(llvm::ArrayRef<planner::Candidate> candidates);

  /// Schedules the best plan with updated weights gathered beside the forward pass, and kept for the backward pass,
  /// instead of at the end of the step, and with whole gradients, which are reduced in larger units. With several
  /// micro-batches for each replica, weights would be gathered for each.
  mlir::LogicalResult deferGathers();

  /// Gives the best plan other buckets of gradients where they make its step shorter.
  mlir::LogicalResult fitBuckets();

  /// Whether the plan's step may be shorter than the best one's, which is seldom below its own cost.
  bool isPromising(const planner::Candidate &candidate) const;

  /// Whether a named strategy's plan may be the shortest: its cost is at most 1 / `kNamedShare` above the best plan's,
  /// or not above it where the strategy needs recompute, which is not in the cost.
  bool isNear(const planner::Candidate &named) const;

  /// Estimates the seconds of a candidate's step from its cost on one position: all positions share the work, and wait
  /// while the first micro-batch fills the pipeline and the last one drains it.
  double getSeconds(const planner::Candidate &candidate, int64_t nanoseconds) const;

  /// Whether the best plan is far from what must be beaten.
  bool isBehind() const;

  /// Takes a candidate for one that is scheduled next; returns false where it was taken before.
  bool take(const planner::Candidate &candidate) { return taken.insert(getKey(candidate)).second; }

  /// The copy of the module with the best plan, before `best` changes it to fit; null where none fits.
  mlir::OwningOpRef<mlir::ModuleOp> planned;
  FittedSchedule best;
  std::optional<planner::Candidate> bestCandidate;
  /// The step of that plan by the costs of its rows, and as it is simulated.
  double bestCost = INFINITY, bestSeconds = INFINITY;
  /// The bytes, by the model's rows, in which plans are likely to fit.
  int64_t memoryBytes = INT64_MAX;

private:
  /// A candidate's plan that was scheduled.
  struct Trial {
    mlir::OwningOpRef<mlir::ModuleOp> planned;
    FittedSchedule fit;
    /// Infinite where it does not fit.
    double seconds = INFINITY;
  };

  using Key = std::pair<const void *, search::Solution>;
  static Key getKey(const planner::Candidate &candidate) {
    return {candidate.choice.mesh.getAsOpaquePointer(), candidate.solution};
  }

  /// Returns what costs of plans are compared with, in seconds: the step of the best plan, or its cost where that is
  /// higher, because the costs of other plans are above their steps by about as much.
  double getBest() const { return std::max(bestCost, bestSeconds); }

  mlir::LogicalResult apply(const planner::Candidate &candidate, mlir::ModuleOp copy) const;
  mlir::FailureOr<Trial> attempt(const planner::Candidate &candidate) const;
  /// Simulates a plan that fits, with larger units and kept gathers where these make its step shorter; a plan that has
  /// no units is tried with other buckets. All that is tried where the step is at most `worthFitting` times as long as
  /// the best one.
  mlir::LogicalResult fit(Trial &trial, double worthFitting) const;
  /// Lowers `memoryBytes` by what the candidate's schedule takes more than the search expected.
  void learnMemory(const planner::Candidate &candidate, const Trial &trial);
  /// Takes a plan for the best one where its step is shorter.
  void keep(const planner::Candidate &candidate, Trial trial);

  mlir::ModuleOp module;
  const planner::PlanSearch &plans;
  const PlanChoice &choice;
  const CostModel &costs;
  double mustBeat;
  int64_t positions;
  std::set<Key> taken;
  /// What `getSeconds` has timed of the schedule, by the number of micro-batches.
  mutable std::map<int64_t, double> fillShares;
};

} // namespace windlass

#endif
