// What the levels with resources (L4, L5) have in common: a step is a table of actions on resources.
#ifndef WINDLASS_LIB_INTERPRETER_MACHINE_H
#define WINDLASS_LIB_INTERPRETER_MACHINE_H

#include "Placement.h"
#include "RunInputs.h"

#include "windlass/Dialect/Sched/IR/SchedOps.h"

namespace windlass::interpreter {

/// Executes functions on resources. The host writes resources between functions as the runtime does: inputs once the
/// compute stream is done, runtime scalars before a step; at the end of a step it waits for everything.
class Machine {
public:
  virtual ~Machine() = default;
  /// What a rank's resource holds, for dumps: no part of the schedule.
  virtual Tensor peek(sched::ResourceOp resource, int64_t rank) = 0;
  /// The host writes the resource on all ranks.
  virtual mlir::LogicalResult write(sched::ResourceOp resource, const RankValues &parts) = 0;
  /// Runs a function for the rank's `index`-th micro-batch of the step; `isLast` says whether it runs for the last time
  /// in the step.
  virtual mlir::LogicalResult run(mlir::func::FuncOp function, int64_t index, bool isLast) = 0;
  virtual void waitForCompute() {}
  /// The host waits for all streams and reads the resources.
  virtual mlir::LogicalResult finishStep(llvm::ArrayRef<sched::ResourceOp> outputs) { return mlir::success(); }
};

/// Runs the steps of a program on the machine.
mlir::FailureOr<RunResult> runSchedule(sched::ProgramOp program, const RunInputs &inputs, Machine &machine);

} // namespace windlass::interpreter

#endif
