#include "FitMemory.h"

#include "windlass/Dialect/Plan/IR/PlanOps.h"
#include "windlass/Dialect/Plan/Transforms/LayoutInference.h"
#include "windlass/Dialect/Plan/Transforms/NamedStrategies.h"
#include "windlass/Simulator/PredictStep.h"

using namespace mlir;
using namespace windlass;

/// The ratio between one size of units or buckets that is tried and the next.
static constexpr int64_t kSizeFactor = 4;

namespace {

/// Changes one setting of a plan that fits, as long as its step becomes shorter when it is simulated.
class Trials {
public:
  /// Begins with the schedule in `fit`. All arguments outlive this object.
  Trials(ModuleOp planned, const PlanChoice &choice, const CostModel &costs, FittedSchedule &fit)
      : planned(planned), choice(choice), costs(costs), fit(fit),
        seconds(predictStep(*fit.schedule.module, costs).seconds) {}

  /// Takes the changed plan where it fits and its step is shorter; returns whether it did.
  FailureOr<bool> attempt(llvm::function_ref<void(FittedSchedule &)> change);
  /// Does the same with units of `bytes`: both plans are the same up to where units are made.
  FailureOr<bool> attemptUnits(int64_t bytes);

private:
  /// Returns the settings of the plan in `fit`, without its schedule.
  FittedSchedule copySettings() const;
  bool keepShorter(FittedSchedule next);

  ModuleOp planned;
  const PlanChoice &choice;
  const CostModel &costs;
  FittedSchedule &fit;
  double seconds;
};

} // namespace

FittedSchedule Trials::copySettings() const {
  FittedSchedule next;
  next.steps = fit.steps;
  next.excessBytes = fit.excessBytes;
  next.unitBytes = fit.unitBytes;
  next.bucketBytes = fit.bucketBytes;
  next.keepsGathers = fit.keepsGathers;
  next.schedule.hasDroppedPrefetch = fit.schedule.hasDroppedPrefetch;
  return next;
}

bool Trials::keepShorter(FittedSchedule next) {
  if (next.schedule.bytes > choice.getMemoryLimit())
    return false;
  double shorter = predictStep(*next.schedule.module, costs).seconds;
  if (shorter >= seconds)
    return false;
  seconds = shorter;
  fit = std::move(next);
  return true;
}

FailureOr<bool> Trials::attempt(llvm::function_ref<void(FittedSchedule &)> change) {
  FittedSchedule next = copySettings();
  change(next);
  OwningOpRef<ModuleOp> copy(planned.clone());
  next.apply(*copy);
  if (failed(makeSchedule(*copy, choice, Code::strategy, Purpose::trial, next.schedule)))
    return failure();
  return keepShorter(std::move(next));
}

FailureOr<bool> Trials::attemptUnits(int64_t bytes) {
  assert(fit.schedule.distributed && "the schedule of a trial with units has it");
  FittedSchedule next = copySettings();
  next.unitBytes = bytes;
  if (failed(changeUnits(fit.schedule, bytes, choice, next.schedule)))
    return failure();
  // The plan that is kept has the module to begin with.
  OwningOpRef<ModuleOp> distributed = std::move(fit.schedule.distributed);
  bool isShorter = keepShorter(std::move(next));
  fit.schedule.distributed = std::move(distributed);
  return isShorter;
}

static CostModel makeCosts(ModuleOp planned, const PlanChoice &choice) {
  return CostModel(choice.cluster, choice.profile.get(), train::getPrecision(planned).str());
}

LogicalResult windlass::fitUnits(ModuleOp planned, const PlanChoice &choice, FittedSchedule &fit) {
  CostModel costs = makeCosts(planned, choice);
  auto own = planned->getAttrOfType<IntegerAttr>(plan::kUnitBytesAttr);
  const plan::TierRule *rule = plan::findTierRule(choice.strategy);
  if (!own || (rule && rule->choosesUnits) || fit.schedule.hasDroppedPrefetch || !costs.overlapsCollectives())
    return success();
  Trials trials(planned, choice, costs, fit);
  // A size is soon reached that changes nothing.
  for (int64_t bytes = own.getInt() * kSizeFactor;; bytes *= kSizeFactor) {
    FailureOr<bool> isShorter = trials.attemptUnits(bytes);
    if (failed(isShorter) || !*isShorter) {
      fit.schedule.distributed = nullptr;
      return success(succeeded(isShorter));
    }
  }
}

LogicalResult windlass::fitBuckets(ModuleOp planned, const PlanChoice &choice, FittedSchedule &fit) {
  CostModel costs = makeCosts(planned, choice);
  auto own = planned->getAttrOfType<IntegerAttr>(plan::kBucketBytesAttr);
  auto mesh = planned->getAttrOfType<plan::MeshAttr>(plan::kMeshAttr);
  // Processors that compute and reduce in turn have nothing to overlap.
  if (!own || mesh.getDataAxes().empty() || !costs.overlapsCollectives())
    return success();
  Trials trials(planned, choice, costs, fit);
  for (bool growing : {true, false}) {
    bool isShorterOnce = false;
    auto next = [&](int64_t bytes) { return growing ? bytes * kSizeFactor : bytes / kSizeFactor; };
    for (int64_t bytes = next(own.getInt()); bytes >= plan::kLeastBucketBytes && bytes <= plan::kMostBucketBytes;
         bytes = next(bytes)) {
      FailureOr<bool> isShorter = trials.attempt([&](FittedSchedule &next) { next.bucketBytes = bytes; });
      if (failed(isShorter))
        return failure();
      if (!*isShorter)
        break;
      isShorterOnce = true;
    }
    if (isShorterOnce)
      break;
  }
  return success();
}

LogicalResult windlass::fitSizes(ModuleOp planned, const PlanChoice &choice, FittedSchedule &fit) {
  return failed(fitUnits(planned, choice, fit)) ? failure() : fitBuckets(planned, choice, fit);
}

LogicalResult windlass::fitGathers(ModuleOp planned, const PlanChoice &choice, FittedSchedule &fit) {
  auto mesh = planned->getAttrOfType<plan::MeshAttr>(plan::kMeshAttr);
  CostModel costs = makeCosts(planned, choice);
  bool gathers = false, fetches = false;
  for (auto parameter : planned.getOps<train::ParameterOp>()) {
    fetches |= parameter->hasAttr(plan::kComputeMemoryAttr);
    auto layout = parameter->getAttrOfType<plan::LayoutAttr>(plan::kLayoutAttr);
    gathers |= parameter.getTrainable() && layout && plan::usesDataAxes(layout, mesh);
  }
  // Weights that the host holds are meant to be on the device for as long as they are used only. A pipeline's chunks
  // may share a weight, which no chunk may take from another one.
  if (!gathers || fetches || !choice.pipeline.hasOnePosition() || fit.schedule.hasDroppedPrefetch ||
      !costs.overlapsCollectives())
    return success();
  Trials trials(planned, choice, costs, fit);
  return success(succeeded(trials.attempt([](FittedSchedule &next) { next.keepsGathers = true; })));
}
