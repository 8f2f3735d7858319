// train-freeze-parameters
#include "NamePatterns.h"
#include "windlass/Dialect/Train/Transforms/Passes.h"

using namespace mlir;

namespace windlass::train {

#define GEN_PASS_DEF_FREEZEPARAMETERSPASS
#include "windlass/Dialect/Train/Transforms/Passes.h.inc"

namespace {

class FreezeParametersPass : public impl::FreezeParametersPassBase<FreezeParametersPass> {
public:
  using FreezeParametersPassBase::FreezeParametersPassBase;
  void runOnOperation() override {
    auto freeze = [](ParameterOp parameter, size_t) {
      parameter.setTrainable(false);
      parameter.setDecays(false);
      parameter.setReason("frozen");
    };
    SmallVector<std::string> globs(patterns.begin(), patterns.end());
    if (failed(applyToMatches(getOperation(), globs, "freeze", freeze)))
      signalPassFailure();
  }
};

} // namespace
} // namespace windlass::train
