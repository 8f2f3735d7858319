// The plan that fits into the memory of a device.
#ifndef WINDLASS_LIB_PIPELINE_FITMEMORY_H
#define WINDLASS_LIB_PIPELINE_FITMEMORY_H

#include "windlass/Pipeline/MakeSchedule.h"
#include "windlass/Pipeline/PlanChoice.h"

#include "mlir/Pass/Pass.h"

namespace windlass {

/// The pass from L2 to L3 under the named strategy and pins of `choice`.
std::unique_ptr<mlir::Pass> createStrategyPass(const PlanChoice &choice);

struct Fit {
  /// Of `plan::RerunSteps`.
  size_t steps = 0;
  Schedule schedule;
  /// By how many bytes the plan as it came is above the limit; negative where it is below.
  int64_t excessBytes = 0;
  /// Makes an L3 module what was found to fit.
  void apply(mlir::ModuleOp planned) const;
};

/// Makes an L3 module, which stays as it is, fit into the memory limit of `choice`: by nothing; by not gathering
/// weights ahead, which costs no arithmetic; or by that and few steps of recompute. What fits is verified if it is for
/// a program. Where nothing does, `fit` does not, and is the one that takes least of some where `wantsLeast`. The plan
/// is expected to exceed the limit by `expectedExcess` bytes as it comes: where they are many, that is not tried.
mlir::LogicalResult fitMemory(mlir::ModuleOp planned, const PlanChoice &choice, Purpose purpose, bool wantsLeast,
                              int64_t expectedExcess, Fit &fit);

/// Whether a plan of these choices fits, for an L2 module that stays as it is, as a trial; what is wrong with it
/// otherwise is not said.
bool tryStrategy(mlir::ModuleOp unplanned, const PlanChoice &choice, Fit &fit);

} // namespace windlass

#endif
