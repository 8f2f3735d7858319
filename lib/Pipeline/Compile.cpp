#include "windlass/Pipeline/Compile.h"

#include "VerbSupport.h"

#include "windlass/Autodiff/Passes.h"
#include "windlass/Conversion/PlanToSched/Passes.h"
#include "windlass/Conversion/SchedToEmitC/SchedToEmitC.h"
#include "windlass/Dialect/Plan/Transforms/Passes.h"
#include "windlass/Dialect/Sched/Transforms/Passes.h"
#include "windlass/Dialect/Train/Transforms/Passes.h"
#include "windlass/Frontend/Check/CheckModel.h"

#include "mlir/Pass/PassManager.h"
#include "mlir/Transforms/Passes.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/SHA256.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;
using namespace windlass;

/// Runs what `add` adds. Passes report what the user can change at an operator; the exit code says that it is the input.
static int runPasses(ModuleOp module, llvm::function_ref<void(OpPassManager &)> add) {
  PassManager manager(module.getContext());
  manager.enableVerifier(true);
  add(manager);
  return succeeded(manager.run(module)) ? kDone : kBadInput;
}

int Compilation::import(const CompileSettings &settings) {
  CheckOptions options;
  options.import.dims = settings.dims;
  options.convert.loss = settings.loss;
  TrainModel model;
  if (int code = importTrainModel(modelPath, context, options, model)) {
    for (const UnsupportedOp &op : model.report.unsupported)
      llvm::errs() << "windlass: unsupported: " << op.name << " x" << op.count << ", first at '" << op.first << "'"
                   << (op.reason.empty() ? "" : ": " + op.reason) << "\n";
    return code;
  }
  module = std::move(model.module);
  weights = model.weights;
  return runPasses(*module, [&](OpPassManager &manager) {
    if (!settings.freeze.empty()) {
      train::FreezeParametersPassOptions freeze;
      for (const std::string &pattern : settings.freeze)
        freeze.patterns.push_back(pattern);
      manager.addPass(train::createFreezeParametersPass(freeze));
    }
    // What recognition left over. Not after differentiation: both would share values between forward and backward.
    manager.addPass(createCanonicalizerPass());
    manager.addPass(createCSEPass());
    manager.addPass(train::createVerifyGraphPass());
  });
}

int Compilation::buildFunctions(const CompileSettings &settings) {
  return runPasses(*module, [&](OpPassManager &manager) {
    // Backward pass, then what the optimizer does with its gradients.
    train::DifferentiatePassOptions differentiate;
    differentiate.microBatches = settings.microBatches;
    manager.addPass(train::createDifferentiatePass(differentiate));
    train::AddOptimizerPassOptions optimizer;
    optimizer.optimizer = settings.optimizer;
    optimizer.microBatches = settings.microBatches;
    optimizer.clip = settings.clip;
    for (const std::string &pattern : settings.noDecay)
      optimizer.noDecay.push_back(pattern);
    manager.addPass(train::createAddOptimizerPass(optimizer));
    // Repeats are found last: the passes before must not make equal layers differ.
    manager.addPass(train::createMarkRepeatsPass());
    manager.addPass(train::createVerifyFunctionsPass());
  });
}

int Compilation::applyStrategy(const PlanSettings &settings) {
  ranks = settings.ranks;
  return runPasses(*module, [&](OpPassManager &manager) {
    plan::ApplyStrategyOptions options;
    options.strategy = settings.strategy;
    options.ranks = settings.ranks;
    manager.addPass(plan::createApplyStrategy(options));
    manager.addPass(plan::createMaterializeLayouts());
    manager.addPass(plan::createVerifyLayouts());
  });
}

int Compilation::schedule(const PlanSettings &settings) {
  return runPasses(*module, [&](OpPassManager &manager) {
    // Functions of one rank on its parts of the values.
    manager.addPass(sched::createPlanToSched());
    // Then commands on buffers: fusion first, while values are still values.
    manager.addPass(sched::createFuseElementwise());
    manager.addPass(sched::createLowerToCommands());
    manager.addPass(sched::createVerifyCommands());
  });
}

int Compilation::emit(cpp::ProjectFiles &files) {
  if (failed(convertSchedToEmitC(*module)))
    return kInternal;
  cpp::ProjectOptions options;
  options.planJson = planText;
  options.planHash = llvm::toHex(llvm::SHA256::hash(llvm::arrayRefFromStringRef(planText)), true);
  options.ranks = ranks;
  options.scratchBytes = scratchBytesPerThread(*module);
  auto made = cpp::makeProject(*module, options);
  if (failed(made))
    return kInternal;
  files = std::move(*made);
  return kDone;
}
