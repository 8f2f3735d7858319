#include "windlass/Dialect/Plan/Transforms/Passes.h"
#include "windlass/Dialect/Plan/Transforms/Segments.h"

namespace windlass::plan {
#define GEN_PASS_DEF_CHOOSESEGMENTS
#include "windlass/Dialect/Plan/Transforms/Passes.h.inc"
} // namespace windlass::plan

using namespace mlir;
using namespace windlass;
using namespace windlass::plan;

namespace {

struct ChooseSegments : windlass::plan::impl::ChooseSegmentsBase<ChooseSegments> {
  using ChooseSegmentsBase::ChooseSegmentsBase;

  void runOnOperation() override {
    if (!getOperation()->getAttrOfType<MeshAttr>(kMeshAttr)) {
      getOperation().emitError("has no plan.mesh: apply a strategy or a plan first");
      return signalPassFailure();
    }
    RecomputeSteps all(getOperation());
    size_t count = steps < 0 ? all.size() : std::min<size_t>(steps, all.size());
    all.apply(getOperation(), count);
  }
};

} // namespace
