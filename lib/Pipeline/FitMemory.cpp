#include "FitMemory.h"

#include "PlanByName.h"

#include "windlass/Dialect/Plan/Transforms/LayoutInference.h"
#include "windlass/Dialect/Plan/Transforms/Passes.h"
#include "windlass/Dialect/Plan/Transforms/Segments.h"
#include "windlass/Simulator/PredictStep.h"
#include "windlass/Support/TensorBytes.h"

#include <set>

using namespace mlir;
using namespace windlass;

/// Where there are more than `kStepShare` steps, at most `kMostGuesses` numbers of steps are chosen by the bytes that
/// they free; after that, halving finds the smallest number that fits to within 1 / `kStepShare` of all steps.
static constexpr size_t kMostGuesses = 3, kStepShare = 32;
/// A plan that is expected to exceed the limit by more than 1 / `kSureShare` of it is not tried: estimates are more
/// accurate than that.
static constexpr int64_t kSureShare = 8;

/// Lets weights be gathered where they are used, each by itself.
static void dropPrefetch(ModuleOp planned) {
  planned->removeAttr(plan::kPrefetchBytesAttr);
  planned->removeAttr(plan::kUnitBytesAttr);
}

void FittedSchedule::apply(ModuleOp planned) const {
  if (schedule.hasDroppedPrefetch)
    dropPrefetch(planned);
  for (auto [name, bytes] : {std::pair(plan::kUnitBytesAttr, unitBytes), {plan::kBucketBytesAttr, bucketBytes}})
    if (bytes > 0)
      planned->setAttr(name, IntegerAttr::get(IntegerType::get(planned.getContext(), 64), bytes));
  if (keepsGathers)
    planned->setAttr(plan::kKeepsGathersAttr, UnitAttr::get(planned.getContext()));
  if (steps)
    plan::RecomputeSteps(planned).apply(planned, *steps);
}

namespace {

/// Makes a plan smaller by steps of recompute, and keeps the smallest schedule in `fit`.
class StepFitting {
public:
  /// Takes a plan that exceeds the limit by `missing` bytes without steps. `choice` and `fit` outlive this object.
  StepFitting(OwningOpRef<ModuleOp> planned, const PlanChoice &choice, bool hasDroppedPrefetch, int64_t missing,
              FittedSchedule &fit)
      : planned(std::move(planned)), choice(choice), limit(choice.getMemoryLimit()),
        hasDroppedPrefetch(hasDroppedPrefetch), missing(missing), steps(*this->planned), fit(fit) {}

  /// Schedules the plan without steps, and keeps that schedule where it is smaller than the one in `fit`.
  LogicalResult tryNone();
  /// Whether all steps together may free what is missing.
  bool mayFit() const { return missing <= steps.getFreedBytes(steps.size()); }
  /// Schedules the plan with few steps; where none of these fits, with more.
  LogicalResult run();

private:
  /// Schedules the plan with the first `count` steps.
  LogicalResult attempt(size_t count, Schedule &schedule);
  /// Does the same, and keeps the schedule if it fits or is smaller than the one in `fit`.
  LogicalResult tryCount(size_t count, bool &fits);
  LogicalResult guessCount(bool &fits);
  LogicalResult halveCounts(bool &fits);
  LogicalResult tryParts();

  OwningOpRef<ModuleOp> planned;
  const PlanChoice &choice;
  int64_t limit;
  bool hasDroppedPrefetch;
  /// The bytes by which the last trial exceeds the limit.
  int64_t missing;
  plan::RecomputeSteps steps;
  FittedSchedule &fit;
  std::set<size_t> tried = {0};
  /// The number of steps below which none fits.
  size_t count = 0;
};

LogicalResult StepFitting::attempt(size_t count, Schedule &schedule) {
  tried.insert(count);
  steps.apply(*planned, count);
  schedule.hasDroppedPrefetch = hasDroppedPrefetch;
  return makeSchedule(*planned, choice, Code::strategy, Purpose::trial, schedule);
}

LogicalResult StepFitting::tryCount(size_t count, bool &fits) {
  Schedule next;
  if (failed(attempt(count, next)))
    return failure();
  // Where the live values alone would fit, the missing bytes are the gaps that packing leaves.
  missing = next.liveBytes > limit ? next.liveBytes - limit : next.bytes - limit;
  fits = next.bytes <= limit;
  if (fits || !fit.schedule.module || next.bytes < fit.schedule.bytes)
    fit = {count, std::move(next), fit.excessBytes};
  return success();
}

LogicalResult StepFitting::tryNone() {
  Schedule without;
  if (failed(attempt(0, without)))
    return failure();
  missing = without.liveBytes - limit;
  if (without.bytes < fit.schedule.bytes)
    fit = {0, std::move(without), fit.excessBytes};
  return success();
}

/// Steps lower the bytes that are live at one time by at most the bytes that they free. So numbers of steps that free
/// fewer bytes than are missing do not suffice, and are skipped.
LogicalResult StepFitting::guessCount(bool &fits) {
  size_t mostGuesses = steps.size() > kStepShare ? kMostGuesses : steps.size();
  for (size_t guesses = 0; !fits && count < steps.size() && guesses < mostGuesses; ++guesses) {
    int64_t freed = steps.getFreedBytes(count++);
    while (count < steps.size() && steps.getFreedBytes(count) - freed < missing)
      ++count;
    if (failed(tryCount(count, fits)))
      return failure();
  }
  return success();
}

/// Halves the remaining range of numbers of steps: where steps free much less than is missing, this ends sooner.
LogicalResult StepFitting::halveCounts(bool &fits) {
  if (count >= steps.size())
    return success();
  size_t low = count, high = steps.size();
  if (failed(tryCount(high, fits)))
    return failure();
  while (fits && high - low > std::max<size_t>(1, steps.size() / kStepShare)) {
    size_t middle = low + (high - low) / 2;
    bool fitsThere = false;
    if (failed(tryCount(middle, fitsThere)))
      return failure();
    (fitsThere ? high : low) = middle;
  }
  return success();
}

/// Tries the steps that recompute parts only: blocks that are recomputed at once may need more memory than their parts.
LogicalResult StepFitting::tryParts() {
  if (!tried.insert(steps.countParts()).second)
    return success();
  Schedule parts;
  if (failed(attempt(steps.countParts(), parts)))
    return failure();
  if (parts.bytes < fit.schedule.bytes)
    fit = {steps.countParts(), std::move(parts), fit.excessBytes};
  return success();
}

LogicalResult StepFitting::run() {
  bool fits = false;
  if (failed(guessCount(fits)))
    return failure();
  if (!fits && failed(halveCounts(fits)))
    return failure();
  return fits ? success() : tryParts();
}

/// Tries the ways to make a plan smaller, and keeps the best schedule in `fit`: of those that fit the one whose step is
/// shorter, else the smallest.
class Fitting {
public:
  Fitting(ModuleOp planned, const PlanChoice &choice, FittedSchedule &fit)
      : planned(planned), choice(choice), limit(choice.getMemoryLimit()), fit(fit) {}

  LogicalResult run(bool wantsLeast, int64_t expectedExcess);

private:
  bool fits(const FittedSchedule &its) const { return its.schedule.module && its.schedule.bytes <= limit; }
  /// Keeps `other` where it is better than the schedule in `fit`.
  void keepBetter(FittedSchedule other, const CostModel &costs);

  ModuleOp planned;
  const PlanChoice &choice;
  int64_t limit;
  FittedSchedule &fit;
};

void Fitting::keepBetter(FittedSchedule other, const CostModel &costs) {
  if (fits(fit) && fits(other)) {
    auto getSeconds = [&](const FittedSchedule &its) { return predictStep(*its.schedule.module, costs).seconds; };
    if (getSeconds(other) < getSeconds(fit))
      fit = std::move(other);
  } else if (other.schedule.module && (!fit.schedule.module || other.schedule.bytes < fit.schedule.bytes)) {
    fit = std::move(other);
  }
}

LogicalResult Fitting::run(bool wantsLeast, int64_t expectedExcess) {
  int64_t missing = expectedExcess;
  bool isSureToExceed = expectedExcess > limit / kSureShare && !plan::getSegmentBlocks(planned).empty();
  // First, the unchanged plan.
  if (!isSureToExceed) {
    if (failed(makeSchedule(planned, choice, Code::strategy, Purpose::trial, fit.schedule)))
      return failure();
    fit.excessBytes = fit.schedule.bytes - limit;
    if (fit.excessBytes <= 0)
      return success();
    missing = fit.schedule.liveBytes - limit;
  }
  auto mayTry = [&](const StepFitting &steps) { return wantsLeast || steps.mayFit(); };
  if (!planned->hasAttr(plan::kPrefetchBytesAttr)) {
    StepFitting steps(OwningOpRef<ModuleOp>(planned.clone()), choice, /*hasDroppedPrefetch=*/false, missing, fit);
    return mayTry(steps) ? steps.run() : success();
  }
  // Second, the plan without weights that are gathered ahead or together: then operators wait for their weights.
  OwningOpRef<ModuleOp> copy(planned.clone());
  dropPrefetch(*copy);
  StepFitting without(std::move(copy), choice, /*hasDroppedPrefetch=*/true, missing, fit);
  if (!isSureToExceed && failed(without.tryNone()))
    return failure();
  // Third, few segments recomputed and weights gathered ahead: arithmetic may take less time than such waiting. Where
  // collectives do not overlap, operators wait anyway.
  CostModel costs(choice.cluster, choice.profile.get(), train::getPrecision(planned).str());
  if (costs.overlapsCollectives()) {
    FittedSchedule kept;
    kept.excessBytes = fit.excessBytes;
    StepFitting with(OwningOpRef<ModuleOp>(planned.clone()), choice, /*hasDroppedPrefetch=*/false, missing, kept);
    if (mayTry(with)) {
      if (failed(with.run()))
        return failure();
      keepBetter(std::move(kept), costs);
    }
  }
  // Last, both.
  return fits(fit) || !mayTry(without) ? success() : without.run();
}

} // namespace

LogicalResult windlass::fitMemory(ModuleOp planned, const PlanChoice &choice, bool wantsLeast, int64_t expectedExcess,
                                  FittedSchedule &fit) {
  return Fitting(planned, choice, fit).run(wantsLeast, expectedExcess);
}

int64_t windlass::getHeldBytes(ModuleOp planned) {
  auto mesh = planned->getAttrOfType<plan::MeshAttr>(plan::kMeshAttr);
  int64_t total = 0;
  for (auto parameter : planned.getOps<train::ParameterOp>()) {
    auto compute = parameter->getAttrOfType<plan::LayoutAttr>(plan::kLayoutAttr);
    auto master = parameter->getAttrOfType<plan::LayoutAttr>(plan::kMasterLayoutAttr);
    if (plan::getComputeMemory(parameter) == plan::MemoryKind::device)
      total += getTensorBytes(compute.getLocalType(parameter.getComputeTensorType(), mesh));
    if (parameter.getTrainable() && plan::getStateMemory(parameter) == plan::MemoryKind::device &&
        !plan::haveSameParts(compute, master, mesh))
      total += getTensorBytes(master.getLocalType(parameter.getTensorType(), mesh));
  }
  return total;
}

bool windlass::tryStrategy(ModuleOp unplanned, const PlanChoice &choice, FittedSchedule &fit) {
  ScopedDiagnosticHandler silent(unplanned.getContext(), [](Diagnostic &) { return success(); });
  OwningOpRef<ModuleOp> planned(unplanned.clone());
  return succeeded(planByName(*planned, choice)) && getHeldBytes(*planned) <= choice.getMemoryLimit() &&
         succeeded(fitMemory(*planned, choice, /*wantsLeast=*/false, /*expectedExcess=*/0, fit)) &&
         fit.schedule.bytes <= choice.getMemoryLimit() && succeeded(fitSizes(*planned, choice, fit));
}
