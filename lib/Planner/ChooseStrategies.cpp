#include "windlass/Planner/ChoosePlan.h"
#include "windlass/Planner/Passes.h"

#include "mlir/IR/Remarks.h"

namespace windlass::planner {
#define GEN_PASS_DEF_CHOOSESTRATEGIES
#include "windlass/Planner/Passes.h.inc"
} // namespace windlass::planner

using namespace mlir;
using namespace windlass;
using namespace windlass::planner;

namespace {

struct ChooseStrategies : windlass::planner::impl::ChooseStrategiesBase<ChooseStrategies> {
  using ChooseStrategiesBase::ChooseStrategiesBase;

  void runOnOperation() override {
    if (failed(choose()))
      signalPassFailure();
  }

  void report(ModuleOp module, const Candidate &chosen) {
    auto [replicas, batchParts, modelRanks] = getSizes(chosen.choice.mesh);
    remark::analysis(module.getLoc(), remark::RemarkOpts::name("chosen").category(getArgument()))
        << remark::metric("replicas", replicas) << remark::metric("batch_parts", batchParts)
        << remark::metric("model_ranks", modelRanks) << remark::metric("cost_ns", chosen.costNanoseconds)
        << remark::metric("bound_ns", chosen.boundNanoseconds) << remark::metric("peak_bytes", chosen.peakBytes);
  }

  LogicalResult choose() {
    ModuleOp module = getOperation();
    llvm::Expected<Cluster> devices = findCluster(cluster);
    if (!devices)
      return module.emitError() << llvm::toString(devices.takeError());
    CostModel costs(*devices, nullptr, train::getPrecision(module).str());
    SearchLimits limits;
    limits.threads = static_cast<int>(std::clamp<int64_t>(threads, 1, 64));
    if (memoryLimit > 0)
      limits.memoryBytes = memoryLimit;
    for (const HostGroup &group : devices->hosts)
      limits.hostDevices = std::max(limits.hostDevices, group.devices);
    if (!mesh.empty() && mesh.size() != 3)
      return module.emitError() << "has a mesh of three axes, but " << mesh.size() << " are given";
    FailureOr<std::unique_ptr<PlanSearch>> search = PlanSearch::create(
        module, devices->getDevices(), costs, limits.threads, SmallVector<std::string>(pins.begin(), pins.end()), mesh);
    if (failed(search))
      return failure();
    SearchReport found = (*search)->choose(limits);
    if (candidate < 0 || static_cast<size_t>(candidate) >= found.candidates.size())
      return module.emitError() << "has plans that fit on " << found.candidates.size() << " of "
                                << (*search)->countMeshes() << " meshes, but the one behind the best "
                                << int64_t(candidate) << " is wanted";
    const Candidate &chosen = found.candidates[candidate];
    report(module, chosen);
    for (const NamedCost &named : found.named)
      remark::analysis(module.getLoc(), remark::RemarkOpts::name(named.name).category(getArgument()))
          << remark::metric("cost_ns", named.costNanoseconds) << remark::metric("excess_bytes", named.excessBytes);
    if (!apply)
      return success();
    if (failed((*search)->apply(chosen.choice, module, bucketBytes)))
      return failure();
    // A search would be useless if its model did not describe the plan that it applies.
    std::optional<int64_t> applied = (*search)->evaluate(module, chosen.choice);
    if (applied != chosen.costNanoseconds)
      return module.emitError() << "costs " << applied.value_or(-1) << " ns per step as it is planned, but "
                                << chosen.costNanoseconds << " ns were searched: this is a defect of the search";
    return success();
  }
};

} // namespace
