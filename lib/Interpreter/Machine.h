// What the levels with resources (L4, L5) have in common: a step is a table of actions on resources.
#ifndef WINDLASS_LIB_INTERPRETER_MACHINE_H
#define WINDLASS_LIB_INTERPRETER_MACHINE_H

#include "Crossings.h"
#include "Placement.h"
#include "RunInputs.h"

#include "windlass/Dialect/Sched/IR/SchedOps.h"

#include <memory>

namespace windlass::interpreter {

/// For what a function runs.
struct FunctionCall {
  /// Whether it adds to the loss or gradients: false where it runs for the first time in a step.
  bool adds = false;
  /// The micro-batch's slots of the function's chunk (`schedule::Action`).
  int64_t slot = 0, handedSlot = 0;
  /// Whether it runs for the last time in the step.
  bool isLast = true;
};

/// Executes functions on the resources of a program. The host writes resources between functions as the runtime does:
/// inputs once the compute stream is done, runtime scalars before a step; at the end of a step it waits for everything.
/// Of what belongs to slots (`ResourceOp::isOfSlot`) each slot has its own; the slot of other resources is 0.
class Machine {
public:
  virtual ~Machine() = default;
  /// Returns what each rank's resource holds, for messages and dumps: no part of the schedule.
  virtual RankValues read(sched::ResourceOp resource, int64_t slot) = 0;
  /// Writes the resource on all ranks, as the host.
  virtual mlir::LogicalResult write(sched::ResourceOp resource, const RankValues &parts, int64_t slot) = 0;
  /// Runs a function. Returns false where it waits for other positions; to be called again with the same arguments.
  virtual mlir::FailureOr<bool> run(mlir::func::FuncOp function, const FunctionCall &call) = 0;
  virtual void waitForCompute() {}
  /// Waits for all streams and reads the resources, as the host.
  virtual mlir::LogicalResult finishStep(llvm::ArrayRef<sched::ResourceOp> outputs) { return mlir::success(); }
};

/// Makes the machine of a position; `crossings` outlives it.
using MachineFactory =
    std::function<mlir::FailureOr<std::unique_ptr<Machine>>(sched::ProgramOp program, Crossings &crossings)>;

/// Runs the steps of a module, each program on a machine of its own. Fails with a diagnostic.
mlir::FailureOr<RunResult> runSchedule(mlir::ModuleOp module, const RunInputs &inputs,
                                       const MachineFactory &makeMachine);

} // namespace windlass::interpreter

#endif
