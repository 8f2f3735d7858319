#include "FitMemory.h"

#include "RunPasses.h"

#include "windlass/Dialect/Plan/Transforms/LayoutInference.h"
#include "windlass/Dialect/Plan/Transforms/Passes.h"
#include "windlass/Dialect/Plan/Transforms/Segments.h"
#include "windlass/Support/TensorBytes.h"

#include <set>

using namespace mlir;
using namespace windlass;

/// Of more than `kStepShare` steps, so many numbers are tried by what they free; then the fewest are found but for one
/// part in `kStepShare` of all.
static constexpr size_t kMostGuesses = 3, kStepShare = 32;
/// A plan that is expected to exceed the limit by more than one part in so many does: estimates are truer than that.
static constexpr int64_t kSureShare = 8;

std::unique_ptr<Pass> windlass::createStrategyPass(const PlanChoice &choice) {
  plan::ApplyStrategyOptions options;
  options.strategy = choice.strategy;
  options.ranks = choice.cluster.getDevices();
  options.pins.append(choice.pins.begin(), choice.pins.end());
  return plan::createApplyStrategy(options);
}

void Fit::apply(ModuleOp planned) const {
  if (schedule.hasDroppedPrefetch)
    planned->removeAttr(plan::kPrefetchBytesAttr);
  plan::RerunSteps(planned).apply(planned, steps);
}

namespace {

/// Tries what makes a plan take less, from what costs least on, and keeps in `fit` what takes least.
class Fitting {
public:
  Fitting(ModuleOp planned, const PlanChoice &choice, Fit &fit)
      : planned(planned), choice(choice), limit(choice.getMemoryLimit()), fit(fit), steps(planned) {}

  LogicalResult run(bool wantsLeast, int64_t expectedExcess);

private:
  /// Schedules the plan with the first `count` steps of recompute, with weights gathered where they are used.
  LogicalResult attempt(size_t count, Schedule &schedule);
  /// The same; keeps what it makes if that fits or takes less than what is kept.
  LogicalResult tryCount(size_t count, bool &fits);
  LogicalResult tryWithoutPrefetch();
  LogicalResult guessCount(bool &fits);
  LogicalResult halveCounts(bool &fits);
  LogicalResult tryParts();

  ModuleOp planned;
  const PlanChoice &choice;
  int64_t limit;
  Fit &fit;
  plan::RerunSteps steps;
  /// A copy of `planned` without prefetch.
  OwningOpRef<ModuleOp> copy;
  bool dropsPrefetch = false;
  std::set<size_t> tried = {0};
  /// Bytes that what was tried last is above the limit.
  int64_t missing = 0;
  /// Fewer steps do not do.
  size_t count = 0;
};

LogicalResult Fitting::attempt(size_t count, Schedule &schedule) {
  tried.insert(count);
  steps.apply(*copy, count);
  schedule.hasDroppedPrefetch = dropsPrefetch;
  return makeSchedule(*copy, choice.cluster, choice.threads, Code::strategy, Purpose::trial, schedule);
}

LogicalResult Fitting::tryCount(size_t count, bool &fits) {
  Schedule next;
  if (failed(attempt(count, next)))
    return failure();
  // Where all that lives would fit, what packing leaves between is missing.
  missing = next.liveBytes > limit ? next.liveBytes - limit : next.bytes - limit;
  fits = next.bytes <= limit;
  if (fits || !fit.schedule.module || next.bytes < fit.schedule.bytes)
    fit = {count, std::move(next), fit.excessBytes};
  return success();
}

LogicalResult Fitting::tryWithoutPrefetch() {
  Schedule without;
  if (failed(attempt(0, without)))
    return failure();
  missing = without.liveBytes - limit;
  if (without.bytes < fit.schedule.bytes)
    fit.schedule = std::move(without);
  return success();
}

/// What lives at one time is at most smaller by what steps free. So those that free less than is missing do not do.
LogicalResult Fitting::guessCount(bool &fits) {
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

/// Where steps free much less than is missing, halving what is left comes sooner to an end.
LogicalResult Fitting::halveCounts(bool &fits) {
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

/// Blocks that are run again as one may take more than their parts.
LogicalResult Fitting::tryParts() {
  if (!tried.insert(steps.countParts()).second)
    return success();
  Schedule parts;
  if (failed(attempt(steps.countParts(), parts)))
    return failure();
  if (parts.bytes < fit.schedule.bytes)
    fit = {steps.countParts(), std::move(parts), fit.excessBytes};
  return success();
}

LogicalResult Fitting::run(bool wantsLeast, int64_t expectedExcess) {
  missing = expectedExcess;
  bool isSureToExceed = expectedExcess > limit / kSureShare && !plan::getSegmentBlocks(planned).empty();
  // As it is.
  if (!isSureToExceed) {
    if (failed(makeSchedule(planned, choice.cluster, choice.threads, Code::strategy, Purpose::trial, fit.schedule)))
      return failure();
    fit.excessBytes = fit.schedule.bytes - limit;
    if (fit.excessBytes <= 0)
      return success();
    missing = fit.schedule.liveBytes - limit;
  }
  // Without weights that are gathered ahead.
  copy = planned.clone();
  dropsPrefetch = bool(copy.get()->removeAttr(plan::kPrefetchBytesAttr));
  if (dropsPrefetch && !isSureToExceed) {
    if (failed(tryWithoutPrefetch()))
      return failure();
    if (fit.schedule.bytes <= limit)
      return success();
  }
  if (!wantsLeast && missing > steps.getFreedBytes(steps.size()))
    return success();
  // With few segments run again, then with fewer than all.
  bool fits = false;
  if (failed(guessCount(fits)))
    return failure();
  if (!fits && failed(halveCounts(fits)))
    return failure();
  return fits ? success() : tryParts();
}

} // namespace

LogicalResult windlass::fitMemory(ModuleOp planned, const PlanChoice &choice, Purpose purpose, bool wantsLeast,
                                  int64_t expectedExcess, Fit &fit) {
  if (failed(Fitting(planned, choice, fit).run(wantsLeast, expectedExcess)))
    return failure();
  // What does not fit becomes no program.
  bool fits = fit.schedule.bytes <= choice.getMemoryLimit();
  return purpose == Purpose::program && fits ? verifySchedule(fit.schedule) : success();
}

/// Bytes of the copies of parameters and of their state on a rank, which every schedule holds from step to step.
static int64_t getHeldBytes(ModuleOp planned) {
  auto mesh = planned->getAttrOfType<plan::MeshAttr>(plan::kMeshAttr);
  int64_t total = 0;
  for (auto parameter : planned.getOps<train::ParameterOp>()) {
    auto compute = parameter->getAttrOfType<plan::LayoutAttr>(plan::kLayoutAttr);
    auto master = parameter->getAttrOfType<plan::LayoutAttr>(plan::kMasterLayoutAttr);
    total += getTensorBytes(compute.getLocalType(parameter.getComputeTensorType(), mesh));
    if (parameter.getTrainable() && !plan::haveSameParts(compute, master, mesh))
      total += getTensorBytes(master.getLocalType(parameter.getTensorType(), mesh));
  }
  return total;
}

bool windlass::tryStrategy(ModuleOp unplanned, const PlanChoice &choice, Fit &fit) {
  ScopedDiagnosticHandler silent(unplanned.getContext(), [](Diagnostic &) { return success(); });
  OwningOpRef<ModuleOp> planned(unplanned.clone());
  auto add = [&](OpPassManager &manager) { manager.addPass(createStrategyPass(choice)); };
  return succeeded(runPasses(*planned, Code::strategy, add)) && getHeldBytes(*planned) <= choice.getMemoryLimit() &&
         succeeded(fitMemory(*planned, choice, Purpose::trial, /*wantsLeast=*/false, /*expectedExcess=*/0, fit)) &&
         fit.schedule.bytes <= choice.getMemoryLimit();
}
