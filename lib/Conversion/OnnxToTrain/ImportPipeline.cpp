//===- ImportPipeline.cpp - the passes from L0 to L1 in their order -------===//

#include "windlass/Conversion/OnnxToTrain/OnnxToTrain.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Pass/PassRegistry.h"
#include "mlir/Transforms/Passes.h"

using namespace mlir;
using namespace windlass;

void windlass::buildTrainImportPipeline(OpPassManager &manager, bool recognize) {
  OpPassManager &function = manager.nest<func::FuncOp>();
  // Redundant ops of exporters go first, so that the recognising passes see one form of transposed keys.
  function.addPass(createTrainSimplifyLayout());
  function.addPass(createCSEPass());
  if (recognize) {
    function.addPass(createTrainRecognizeActivations());
    function.addPass(createTrainRecognizeNorms());
    function.addPass(createTrainRecognizeRotary());
    function.addPass(createTrainRecognizeAttention());
    function.addPass(createTrainRecognizeExperts());
  }
  // This comes behind recognition, because it folds the transposes by which attention is recognised.
  function.addPass(createTrainKeepDimensions());
  function.addPass(createCSEPass());
  function.addPass(createTrainAssignIds());
}

namespace {
struct ImportPipelineOptions : PassPipelineOptions<ImportPipelineOptions> {
  Option<bool> recognize{*this, "recognize", llvm::cl::desc("Replace chains of primitives by one op"),
                         llvm::cl::init(true)};
};
} // namespace

void windlass::registerOnnxToTrainPipelines() {
  PassPipelineRegistration<ImportPipelineOptions>("onnx-to-train-pipeline", "From L0 to L1, without values of weights",
                                                  [](OpPassManager &manager, const ImportPipelineOptions &options) {
                                                    manager.addPass(createOnnxConvertToTrain());
                                                    buildTrainImportPipeline(manager, options.recognize);
                                                  });
}
