// The phases of the compilation: which passes take a module from one level to the next. C++, windlass-opt, tests and
// docs all take their lists of passes from here.
#ifndef WINDLASS_PIPELINE_PHASES_H
#define WINDLASS_PIPELINE_PHASES_H

#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassOptions.h"

namespace windlass {

/// The phases between the other levels: `buildTrainImportPipeline` leads from L0 to L1, and one pass, which applies or
/// chooses a plan, from L2 to L3.
enum class Phase {
  /// L1 to L1: cleans up what recognition left over. The model's hash is the hash of this graph.
  prepareGraph,
  /// L1 to L2. The only phase with settings.
  buildFunctions,
  /// L3 to L3b.
  materializeLayouts,
  /// L3b to L4.
  distribute,
  /// L4 to L4, where no cluster is known: rows of tokens go to the ranks with their experts only.
  routeRows,
  /// L4 to L4: fusion, before values become buffers.
  fuse,
  /// L4 to L4: collectives become units, and move beside computation.
  overlap,
  /// L4 to L5, which is not verified yet.
  lowerToCommands,
  /// Changes nothing at L5. Takes longer than all other phases together.
  verifyCommands,
};

/// The settings of `Phase::buildFunctions`, as `train-functions-pipeline` has them.
struct FunctionsOptions : mlir::PassPipelineOptions<FunctionsOptions> {
  Option<std::string> average{*this, "average",
                              llvm::cl::desc("What a step's loss is the mean of: micro-batches or tokens"),
                              llvm::cl::init("micro-batches")};
  Option<int64_t> microBatches{*this, "micro-batches", llvm::cl::desc("G, over all ranks"), llvm::cl::init(1)};
  Option<int64_t> merge{*this, "merge", llvm::cl::desc("How many micro-batches are computed as one"),
                        llvm::cl::init(1)};
  Option<std::string> optimizer{*this, "optimizer", llvm::cl::desc("adamw, adafactor, adam, lamb, lion, muon or sgd"),
                                llvm::cl::init("adamw")};
  Option<bool> clip{*this, "clip", llvm::cl::desc("Clip gradients by their global norm"), llvm::cl::init(false)};
  Option<bool> ema{*this, "ema", llvm::cl::desc("Keep a moving average of the weights"), llvm::cl::init(false)};
  ListOption<std::string> noDecay{*this, "no-decay", llvm::cl::desc("Globs of logical names without weight decay")};
  ListOption<std::string> decayScales{*this, "decay-scale",
                                      llvm::cl::desc("GLOB=X: decay by X times the weight decay")};
  ListOption<std::string> rateScales{*this, "lr-scale", llvm::cl::desc("GLOB=X: X times the learning rate")};
  Option<std::string> precision{*this, "precision", llvm::cl::desc("f32, tf32, bf16 or f16"), llvm::cl::init("f32")};
  Option<bool> bf16Gradients{*this, "bf16-gradients",
                             llvm::cl::desc("Gradients travel between ranks, and to the host, in bf16"),
                             llvm::cl::init(false)};
};

/// Appends the passes of `phase` to `manager`; only `Phase::buildFunctions` reads `functions`.
void addPhase(mlir::OpPassManager &manager, Phase phase, const FunctionsOptions &functions = {});

/// Registers a pipeline of windlass-opt for every phase; the pipeline of `lowerToCommands` verifies its result.
void registerPhasePipelines();

} // namespace windlass

#endif
