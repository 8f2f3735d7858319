#include "windlass/Pipeline/Phases.h"

#include "windlass/Autodiff/Passes.h"
#include "windlass/Conversion/PlanToSched/Passes.h"
#include "windlass/Dialect/Plan/Transforms/Passes.h"
#include "windlass/Dialect/Sched/Transforms/Passes.h"
#include "windlass/Dialect/Train/Transforms/Passes.h"

#include "mlir/Pass/PassRegistry.h"
#include "mlir/Transforms/Passes.h"

using namespace mlir;
using namespace windlass;

static void addFunctions(OpPassManager &manager, const FunctionsOptions &options) {
  if (options.average == "tokens")
    manager.addPass(train::createAverageTokensPass());
  if (options.merge != 1) {
    train::MergeMicroBatchesPassOptions merge;
    merge.count = options.merge;
    manager.addPass(train::createMergeMicroBatchesPass(merge));
  }
  // The backward pass comes first, then the optimizer's use of its gradients.
  train::DifferentiatePassOptions differentiate;
  differentiate.microBatches = options.microBatches;
  differentiate.scalesLoss = options.precision == "f16";
  manager.addPass(train::createDifferentiatePass(differentiate));
  train::AddOptimizerPassOptions optimizer;
  optimizer.optimizer = options.optimizer;
  optimizer.microBatches = options.microBatches;
  optimizer.clip = options.clip;
  optimizer.ema = options.ema;
  optimizer.noDecay.assign(options.noDecay.begin(), options.noDecay.end());
  optimizer.decayScales.assign(options.decayScales.begin(), options.decayScales.end());
  optimizer.rateScales.assign(options.rateScales.begin(), options.rateScales.end());
  manager.addPass(train::createAddOptimizerPass(optimizer));
  train::LowerPrecisionPassOptions precision;
  precision.precision = options.precision;
  precision.bf16Gradients = options.bf16Gradients;
  manager.addPass(train::createLowerPrecisionPass(precision));
  // Repeats are found last, because the passes before must not make equal layers differ. Segments that can be
  // recomputed are cut from them.
  manager.addPass(train::createMarkRepeatsPass());
  manager.addPass(train::createMarkSegmentsPass());
  manager.addPass(train::createVerifyFunctionsPass());
}

void windlass::addPhase(OpPassManager &manager, Phase phase, const FunctionsOptions &functions) {
  switch (phase) {
  case Phase::prepareGraph:
    // This runs before differentiation, after which it would share values between forward and backward.
    manager.addPass(createCanonicalizerPass());
    manager.addPass(createCSEPass());
    manager.addPass(train::createVerifyGraphPass());
    return;
  case Phase::buildFunctions:
    return addFunctions(manager, functions);
  case Phase::materializeLayouts:
    // Recomputed operators come first: the copies are split and laid out like their operators.
    manager.addPass(plan::createRecomputeSegments());
    manager.addPass(plan::createDecomposeSplitReductions());
    manager.addPass(plan::createMaterializeLayouts());
    manager.addPass(plan::createKeepGathers());
    manager.addPass(plan::createVerifyLayouts());
    return;
  case Phase::distribute:
    // Functions of one rank on its local slices of the values.
    manager.addPass(sched::createPlanToSched());
    manager.addPass(sched::createVerifyAsync());
    return;
  case Phase::routeRows:
    manager.nest<sched::ProgramOp>().addPass(sched::createRouteRows());
    return;
  case Phase::fuse: {
    OpPassManager &programs = manager.nest<sched::ProgramOp>();
    programs.addPass(sched::createFuseElementwise());
    return;
  }
  case Phase::overlap: {
    OpPassManager &programs = manager.nest<sched::ProgramOp>();
    programs.addPass(sched::createUpdateEarly());
    // What is gathered early are units.
    programs.addPass(sched::createJoinCollectives());
    programs.addPass(sched::createOverlapCollectives());
    // What reads scattered gradients would keep them from being joined.
    programs.addPass(sched::createSquareEarly());
    return;
  }
  case Phase::lowerToCommands: {
    OpPassManager &programs = manager.nest<sched::ProgramOp>();
    programs.addPass(sched::createLowerToCommands());
    // These passes work on buffers that stay where they are.
    programs.addPass(sched::createFuseLosses());
    programs.addPass(sched::createFuseNorms());
    programs.addPass(sched::createFuseUpdates());
    programs.addPass(sched::createJoinUpdates());
    return;
  }
  case Phase::verifyCommands:
    manager.addPass(sched::createVerifyCommands());
    return;
  }
}

void windlass::registerPhasePipelines() {
  auto add = [](llvm::StringRef name, llvm::StringRef summary, std::initializer_list<Phase> phases) {
    llvm::SmallVector<Phase, 2> list(phases);
    PassPipelineRegistration<>(name, summary, [list](OpPassManager &manager) {
      for (Phase phase : list)
        addPhase(manager, phase);
    });
  };
  add("train-graph-pipeline", "Cleans up and verifies a graph at L1", {Phase::prepareGraph});
  PassPipelineRegistration<FunctionsOptions>("train-functions-pipeline",
                                             "From L1 to L2: the functions of a training step",
                                             [](OpPassManager &manager, const FunctionsOptions &options) {
                                               addPhase(manager, Phase::buildFunctions, options);
                                             });
  add("plan-materialize-pipeline", "From L3 to L3b: recomputed segments, and a reshard for each change of layout",
      {Phase::materializeLayouts});
  add("plan-to-sched-pipeline", "From L3b to L4: the program of one rank", {Phase::distribute});
  add("sched-fuse-pipeline", "Fuses element-wise operators at L4 and moves collectives beside computation",
      {Phase::routeRows, Phase::fuse, Phase::overlap});
  add("sched-to-commands-pipeline", "From L4 to L5, verified: commands on buffers",
      {Phase::lowerToCommands, Phase::verifyCommands});
}
