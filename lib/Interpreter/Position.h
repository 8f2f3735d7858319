// A position of a run at L4 or L5: its program on a machine, with what the host writes and reads there.
#ifndef WINDLASS_LIB_INTERPRETER_POSITION_H
#define WINDLASS_LIB_INTERPRETER_POSITION_H

#include "Machine.h"

#include "windlass/Schedule/Schedule.h"

#include <memory>

namespace windlass::interpreter {

class Position {
public:
  Position(sched::ProgramOp program, const RunInputs &inputs, std::unique_ptr<Machine> machine);

  /// Lists the actions of a step. Fails with a diagnostic where the program has no schedule, or one that no program
  /// runs, and where the data-parallel replicas cannot share the micro-batches of a step.
  mlir::LogicalResult prepare();

  sched::ProgramOp getProgram() const { return program; }
  Machine &getMachine() { return *machine; }
  const std::vector<schedule::Action> &getActions() const { return actions; }
  int64_t getRanks() const { return mesh.getRanks(); }
  /// The number of data-parallel replicas (P), which process different micro-batches at the same time.
  int64_t countReplicas() const { return static_cast<int64_t>(replicas.size()); }

  mlir::LogicalResult loadParameters();
  /// Writes the hyperparameters of a step.
  mlir::LogicalResult writeScalars(int64_t step, const LossScaling &scaling);
  /// Writes the inputs of a chunk into a slot: replica j takes micro-batch `firstK` + j.
  mlir::LogicalResult writeInputs(int64_t chunk, int64_t slot, int64_t firstK);
  /// Runs the function of a role and chunk; false where it waits for other positions, to be called again. Fails with a
  /// diagnostic where there is none.
  mlir::FailureOr<bool> runFunction(sched::StepRole role, int64_t chunk, const FunctionCall &call);
  /// Adds the gradients, as the update reads them, to the tensors of the result.
  mlir::LogicalResult dumpGradients(int64_t step, const LossScaling &scaling, RunResult &result);
  /// Adds the parameters as `prefix` and their name.
  mlir::LogicalResult dumpParameters(const llvm::Twine &prefix, RunResult &result);
  /// Adds what the steps have left: parameters, as the optimizer holds them, and its state.
  mlir::LogicalResult dumpState(RunResult &result);
  /// Returns the whole value of a resource, after reductions.
  mlir::FailureOr<Tensor> wholeOf(sched::ResourceOp resource);
  /// Returns the whole value of a resource as each replica holds it.
  mlir::FailureOr<llvm::SmallVector<Tensor>> wholesOf(sched::ResourceOp resource);

  auto resources(sched::ResourceKind kind) {
    return llvm::make_filter_range(program.getOps<sched::ResourceOp>(),
                                   [kind](sched::ResourceOp resource) { return resource.getKind() == kind; });
  }

private:
  mlir::FailureOr<Placement> placementOf(sched::ResourceOp resource, bool isReduced);
  mlir::LogicalResult writeWhole(sched::ResourceOp resource, llvm::Expected<Tensor> whole);
  mlir::LogicalResult dump(sched::ResourceOp resource, const llvm::Twine &prefix, RunResult &result);
  /// Whether another resource, of that kind, holds what counts for the same parameter.
  bool isReplaced(sched::ResourceOp resource, sched::ResourceKind kind);

  sched::ProgramOp program;
  const RunInputs &inputs;
  plan::MeshAttr mesh;
  std::unique_ptr<Machine> machine;
  std::vector<llvm::SmallVector<int64_t>> everyone, replicas;
  std::vector<schedule::Action> actions;
};

} // namespace windlass::interpreter

#endif
