// Runs passes of the compilation.
#ifndef WINDLASS_LIB_PIPELINE_RUNPASSES_H
#define WINDLASS_LIB_PIPELINE_RUNPASSES_H

#include "windlass/Pipeline/Phases.h"
#include "windlass/Support/Diagnostics.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Pass/PassManager.h"

namespace windlass {

/// Runs the passes that `add` adds. Passes report at an operator what the user can change; their errors are of kind
/// `code` unless they say otherwise. The module is verified after the last pass only: to verify it after each took a
/// seventh of the search for a plan.
inline mlir::LogicalResult runPasses(mlir::ModuleOp module, Code code,
                                     llvm::function_ref<void(mlir::OpPassManager &)> add) {
  CodeScope scope(module.getContext(), code);
  mlir::PassManager manager(module.getContext());
  manager.enableVerifier(false);
  add(manager);
  return mlir::success(succeeded(manager.run(module)) && succeeded(mlir::verify(module)));
}

/// Runs phases without settings, in their order.
inline mlir::LogicalResult runPhases(mlir::ModuleOp module, Code code, std::initializer_list<Phase> phases) {
  return runPasses(module, code, [&](mlir::OpPassManager &manager) {
    for (Phase phase : phases)
      addPhase(manager, phase);
  });
}

} // namespace windlass

#endif
