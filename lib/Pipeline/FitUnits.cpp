#include "FitMemory.h"

#include "windlass/Dialect/Plan/IR/PlanOps.h"
#include "windlass/Dialect/Plan/Transforms/LayoutInference.h"
#include "windlass/Simulator/PredictStep.h"

using namespace mlir;
using namespace windlass;

/// The ratio between one size of units that is tried and the next.
static constexpr int64_t kUnitFactor = 4;

/// Schedules a copy of the plan with other settings, which `next` has; returns the seconds of a step, infinite where it
/// does not fit.
static FailureOr<double> trySchedule(ModuleOp planned, const PlanChoice &choice, const CostModel &costs,
                                     const FittedSchedule &fit, FittedSchedule &next) {
  OwningOpRef<ModuleOp> copy(planned.clone());
  next.steps = fit.steps;
  next.excessBytes = fit.excessBytes;
  next.apply(*copy);
  if (failed(makeSchedule(*copy, choice, Code::strategy, Purpose::trial, next.schedule)))
    return failure();
  if (next.schedule.bytes > choice.getMemoryLimit())
    return INFINITY;
  return predictStep(*next.schedule.module, costs).seconds;
}

static CostModel makeCosts(ModuleOp planned, const PlanChoice &choice) {
  return CostModel(choice.cluster, choice.profile.get(), train::getPrecision(planned).str());
}

LogicalResult windlass::fitUnits(ModuleOp planned, const PlanChoice &choice, Purpose purpose, FittedSchedule &fit) {
  if (fit.schedule.bytes > choice.getMemoryLimit())
    return success();
  CostModel costs = makeCosts(planned, choice);
  auto own = planned->getAttrOfType<IntegerAttr>(plan::kUnitBytesAttr);
  if (own && !fit.schedule.hasDroppedPrefetch && costs.overlapsCollectives()) {
    double seconds = predictStep(*fit.schedule.module, costs).seconds;
    // A size is soon reached that changes nothing.
    for (int64_t bytes = own.getInt() * kUnitFactor;; bytes *= kUnitFactor) {
      FittedSchedule next;
      next.unitBytes = bytes;
      FailureOr<double> shorter = trySchedule(planned, choice, costs, fit, next);
      if (failed(shorter))
        return failure();
      if (*shorter >= seconds)
        break;
      seconds = *shorter;
      fit = std::move(next);
    }
  }
  return purpose == Purpose::program ? verifySchedule(fit.schedule) : success();
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
  FittedSchedule next;
  next.unitBytes = fit.unitBytes;
  next.keepsGathers = true;
  FailureOr<double> shorter = trySchedule(planned, choice, costs, fit, next);
  if (failed(shorter))
    return failure();
  if (*shorter < predictStep(*fit.schedule.module, costs).seconds)
    fit = std::move(next);
  return success();
}
