// From a plan to its schedule, and the plan that fits into the memory of a device.
#ifndef WINDLASS_LIB_PIPELINE_FITMEMORY_H
#define WINDLASS_LIB_PIPELINE_FITMEMORY_H

#include "windlass/Dialect/Plan/Transforms/StrategyChoice.h"
#include "windlass/Pipeline/Compile.h"

#include "mlir/Pass/Pass.h"

namespace windlass {

/// The pass from L2 to L3 under the named strategy and pins of `choice`.
std::unique_ptr<mlir::Pass> createStrategyPass(const PlanChoice &choice);

/// L3 to L3b; an exit code. What is wrong is of kind `code`.
int materialize(mlir::ModuleOp module, Code code);

/// L3, which stays as it is, to L5, which is not verified: that takes longer than all the rest; an exit code. What is
/// wrong with layouts is of kind `code`.
int makeSchedule(mlir::ModuleOp planned, const Cluster &cluster, int64_t threads, Code code, Schedule &schedule);

/// What is left of a rank's memory limit for what plans place, at most: what its process takes whatever the plan and
/// the processor are is taken off, so that a bound holds on other machines too.
int64_t getSearchedMemory(const PlanChoice &choice);

/// What the communicators of a plan on such a mesh are expected to take: one for each axis, and one for all of them.
int64_t expectCommunication(const plan::StrategyChoice &mesh, const Cluster &cluster);

struct Fit {
  /// Of `plan::RerunSteps`.
  size_t steps = 0;
  Schedule schedule;
  /// By how many bytes the plan as it came is above the limit; negative where it is below.
  int64_t excessBytes = 0;
  /// Makes an L3 module what was found to fit.
  void apply(mlir::ModuleOp planned) const;
};

/// What makes an L3 module, which stays as it is, fit into the memory limit of `choice`: nothing; that weights are not
/// gathered ahead, which costs no arithmetic; or that and few steps. An exit code. Where nothing does, `fit`
/// does not, and is the one that takes least of some where `wantsLeast`. By so many bytes the plan is expected to
/// exceed the limit as it comes: where they are many, that is not tried.
int fitMemory(mlir::ModuleOp planned, const PlanChoice &choice, bool wantsLeast, int64_t expectedExcess, Fit &fit);

/// Whether a plan of these choices fits, for an L2 module that stays as it is; what is wrong with it otherwise is not
/// said.
bool tryStrategy(mlir::ModuleOp unplanned, const PlanChoice &choice, Fit &fit);

/// Says by how much a plan exceeds the memory of a device and what would fit; returns the exit code. `unplanned` is at
/// L2.
int failForMemory(mlir::ModuleOp unplanned, const PlanChoice &choice, const Schedule &least);

} // namespace windlass

#endif
