// Makes a plan fit into the memory of a device.
#ifndef WINDLASS_LIB_PIPELINE_FITMEMORY_H
#define WINDLASS_LIB_PIPELINE_FITMEMORY_H

#include "windlass/Pipeline/MakeSchedule.h"
#include "windlass/Pipeline/PlanChoice.h"

namespace windlass {

struct FittedSchedule {
  /// The number of steps of `plan::RecomputeSteps` that are applied; none: the plan recomputes what its strategy says.
  std::optional<size_t> steps;
  Schedule schedule;
  /// The bytes by which the unchanged plan exceeds the limit; negative where it is below.
  int64_t excessBytes = 0;
  /// The size of units, where it is larger than that of the unchanged plan; else 0.
  int64_t unitBytes = 0;
  /// The size of buckets, where it is another one than that of the unchanged plan; else 0.
  int64_t bucketBytes = 0;
  /// Whether gathered weights are kept for the backward pass, which the unchanged plan does not do.
  bool keepsGathers = false;
  /// Applies to an L3 module the changes that were found to fit.
  void apply(mlir::ModuleOp planned) const;
};

/// Schedules a copy of an L3 module so that it fits into the memory limit of `choice`: unchanged; or without gathering
/// weights ahead and without units, which costs no arithmetic, or with few steps of recompute, whichever of the two has
/// the shorter step when it is simulated (where collectives do not overlap with operators, the former if it fits); or
/// with both. The schedule is not verified. Where none fits, `fit` has one that exceeds the limit; with `wantsLeast`
/// all ways are tried, and it is the smallest of them. The unchanged plan is expected to exceed the limit by
/// `expectedExcess` bytes: where they are many, it is not tried.
mlir::LogicalResult fitMemory(mlir::ModuleOp planned, const PlanChoice &choice, bool wantsLeast, int64_t expectedExcess,
                              FittedSchedule &fit);

/// Gives the plan of a schedule in `fit` larger units of weights and gradients, as long as it then still fits and its
/// step becomes shorter when it is simulated: large units save latency, small ones leave less to wait for. Where
/// collectives do not overlap with operators, units stay as they are.
mlir::LogicalResult fitUnits(mlir::ModuleOp planned, const PlanChoice &choice, FittedSchedule &fit);

/// Gives the plan of a schedule in `fit` larger buckets of gradients likewise, or smaller ones where larger ones are no
/// better: large ones use links better, small ones leave less to wait for when the last gradient is there.
mlir::LogicalResult fitBuckets(mlir::ModuleOp planned, const PlanChoice &choice, FittedSchedule &fit);

/// Gives the plan of a named strategy the units and the buckets that suit it.
mlir::LogicalResult fitSizes(mlir::ModuleOp planned, const PlanChoice &choice, FittedSchedule &fit);

/// Keeps the weights that the plan of a schedule in `fit` gathers in a forward pass for the backward pass, where that
/// fits and the step becomes shorter when it is simulated. Where collectives do not overlap with operators, they are
/// gathered again, as strategies that shard weights say.
mlir::LogicalResult fitGathers(mlir::ModuleOp planned, const PlanChoice &choice, FittedSchedule &fit);

/// Returns the bytes of the compute and master copies of parameters on a rank, which every schedule holds from step to
/// step.
int64_t getHeldBytes(mlir::ModuleOp planned);

/// Returns whether the named strategy of `choice` fits, as a trial on a copy of an L2 module, and the schedule that its
/// plan would have; reports no errors.
bool tryStrategy(mlir::ModuleOp unplanned, const PlanChoice &choice, FittedSchedule &fit);

} // namespace windlass

#endif
