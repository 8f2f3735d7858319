// train-verify-graph
#include "FunctionChecks.h"
#include "windlass/Dialect/Train/IR/TrainFunctions.h"
#include "windlass/Dialect/Train/Transforms/Passes.h"

using namespace mlir;

namespace windlass::train {

#define GEN_PASS_DEF_VERIFYGRAPHPASS
#include "windlass/Dialect/Train/Transforms/Passes.h.inc"

namespace {

bool checkLoss(func::FuncOp function) {
  bool isRight = checkFunction(function, /*mayWrite=*/false);
  Type type = function.getNumResults() == 1 ? function.getResultTypes().front() : Type();
  auto tensor = dyn_cast_or_null<RankedTensorType>(type);
  if (!tensor || tensor.getRank() != 0 || !isa<FloatType>(tensor.getElementType())) {
    function.emitOpError() << "must return one floating-point number, the loss, but its type is "
                           << function.getFunctionType();
    isRight = false;
  }
  for (unsigned index = 0; index < function.getNumArguments(); ++index)
    if (!function.getArgAttrOfType<StringAttr>(index, kInputAttr)) {
      function.emitOpError() << "has no " << kInputAttr << " on argument " << index;
      isRight = false;
    }
  return isRight;
}

class VerifyGraphPass : public impl::VerifyGraphPassBase<VerifyGraphPass> {
public:
  void runOnOperation() override {
    ModuleOp module = getOperation();
    bool isRight = checkModule(module, {kLossFunction});
    if (auto function = getLossFunction(module)) {
      isRight &= checkLoss(function);
    } else {
      module.emitError() << "a training graph has a function @" << kLossFunction;
      isRight = false;
    }
    if (!isRight)
      return signalPassFailure();
    markAllAnalysesPreserved();
  }
};

} // namespace
} // namespace windlass::train
