#include "FitMemory.h"

#include "windlass/Dialect/Plan/IR/PlanOps.h"
#include "windlass/Simulator/PredictStep.h"

using namespace mlir;
using namespace windlass;

/// The ratio between one size of units that is tried and the next.
static constexpr int64_t kUnitFactor = 4;

LogicalResult windlass::fitUnits(ModuleOp planned, const PlanChoice &choice, Purpose purpose, FittedSchedule &fit) {
  if (fit.schedule.bytes > choice.getMemoryLimit())
    return success();
  CostModel costs(choice.cluster, choice.profile.get(), train::getPrecision(planned).str());
  auto own = planned->getAttrOfType<IntegerAttr>(plan::kUnitBytesAttr);
  if (own && !fit.schedule.hasDroppedPrefetch && costs.overlapsCollectives()) {
    double seconds = predictStep(*fit.schedule.module, costs).seconds;
    // Units stay within blocks, so that a size is soon reached that changes nothing.
    for (int64_t bytes = own.getInt() * kUnitFactor;; bytes *= kUnitFactor) {
      OwningOpRef<ModuleOp> copy(planned.clone());
      FittedSchedule next;
      next.steps = fit.steps;
      next.excessBytes = fit.excessBytes;
      next.unitBytes = bytes;
      next.apply(*copy);
      if (failed(makeSchedule(*copy, choice, Code::strategy, Purpose::trial, next.schedule)))
        return failure();
      double shorter = predictStep(*next.schedule.module, costs).seconds;
      if (next.schedule.bytes > choice.getMemoryLimit() || shorter >= seconds)
        break;
      seconds = shorter;
      fit = std::move(next);
    }
  }
  return purpose == Purpose::program ? verifySchedule(fit.schedule) : success();
}
