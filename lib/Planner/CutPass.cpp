#include "windlass/Planner/CutModel.h"
#include "windlass/Planner/Passes.h"

#include "windlass/Cluster/Cluster.h"
#include "windlass/Dialect/Train/IR/TrainFunctions.h"

namespace windlass::planner {
#define GEN_PASS_DEF_CUTMODEL
#include "windlass/Planner/Passes.h.inc"
} // namespace windlass::planner

using namespace mlir;
using namespace windlass;

namespace {

struct CutModel : planner::impl::CutModelBase<CutModel> {
  using CutModelBase::CutModelBase;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    llvm::Expected<Cluster> devices = findCluster(cluster);
    if (!devices) {
      module.emitError() << llvm::toString(devices.takeError());
      return signalPassFailure();
    }
    if (positions < 2 || chunks < 1 || devices->getDevices() % positions != 0) {
      module.emitError() << "cannot be cut: " << int64_t(positions) << " positions with " << int64_t(chunks)
                         << " chunks each do not share " << devices->getDevices() << " devices";
      return signalPassFailure();
    }
    CostModel costs(*devices, nullptr, train::getPrecision(module).str());
    if (failed(planner::cutModel(module, {positions, schedule, chunks}, devices->getDevices() / positions, costs)))
      signalPassFailure();
  }
};

} // namespace
