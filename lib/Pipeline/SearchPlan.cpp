#include "SearchPlan.h"

#include "FailForMemory.h"
#include "FitMemory.h"
#include "Reserve.h"
#include "RunPasses.h"

#include "windlass/Dialect/Plan/Transforms/NamedStrategies.h"
#include "windlass/Dialect/Plan/Transforms/Pins.h"
#include "windlass/Simulator/PredictStep.h"

#include <cmath>
#include <set>

using namespace mlir;
using namespace windlass;

/// The most plans of the search that are scheduled, to see how much memory they need and what they recompute.
static constexpr int kMostTries = 5;
/// The share: plans that can save less than 1 / `kWorthTry` of the best step are not scheduled.
static constexpr int kWorthTry = 50;
/// The most named strategies that are scheduled besides; their cost is above the time of the best plan by at most 1 /
/// `kNamedShare` of it.
static constexpr int kMostNamed = 4, kNamedShare = 10;
/// Larger units and kept gathers are tried for plans whose steps are at most `kWorthFitting` times as long as the best
/// one. They make steps of OPT-6.7B on 64 devices shorter by an eighth, and those of GPT-2 1.5B on 128 by more than a
/// half.
static constexpr int kWorthFitting = 3;
/// Where the best of `kLeastTries` plans takes longer than what must be beaten by more than 1 / `kBehindShare`, others
/// with as many stages are not tried.
static constexpr size_t kLeastTries = 3;
static constexpr int kBehindShare = 10;
/// The ratio between one size of bucket that is tried and the next.
static constexpr int64_t kBucketFactor = 4;

namespace {

/// Schedules plans, and keeps the one whose step is shortest when it is simulated.
class ScheduleTrials {
public:
  ScheduleTrials(ModuleOp module, const planner::PlanSearch &plans, const PlanChoice &choice, const CostModel &costs,
                 double mustBeat)
      : module(module), plans(plans), choice(choice), costs(costs), mustBeat(mustBeat),
        positions(choice.pipeline.positions) {}

  /// Plans a copy of the module by a candidate and schedules it.
  LogicalResult schedule(const planner::Candidate &candidate, int64_t bucketBytes = plan::kBucketBytes) {
    tried.insert(getKey(candidate));
    OwningOpRef<ModuleOp> planned(module.clone());
    if (failed(apply(candidate, bucketBytes, *planned)))
      return failure();
    // Other buckets are tried with the units and gathers that suit the plan.
    bool fitsUnits = bucketBytes == plan::kBucketBytes;
    if (!fitsUnits && unitBytes)
      planned->getOperation()->setAttr(plan::kUnitBytesAttr, unitBytes);
    if (!fitsUnits && keepsGathers)
      planned->getOperation()->setAttr(plan::kKeepsGathersAttr, UnitAttr::get(module.getContext()));
    FittedSchedule fit;
    // The excess is over the memory of the candidate's rows, so it counts as many blocks as recomputed.
    int64_t expectedExcess = candidate.recomputeParts > 0 ? candidate.keptPeakBytes - choice.getMemoryLimit() : 0;
    if (failed(fitMemory(*planned, choice, Purpose::trial, /*wantsLeast=*/candidate.recomputeParts > 0, expectedExcess,
                         fit)))
      return failure();
    int64_t excess = fit.schedule.bytes - choice.getMemoryLimit();
    bool fits = excess <= 0;
    if (candidate.recomputeParts == 0 && (fit.schedule.recompute.flops > 0 || fit.schedule.hasDroppedPrefetch))
      excess = fit.excessBytes;
    // Its memory besides the rows of the model is known now. The next plan is likely to have the same reserve, and to
    // need slightly more of the rest.
    int64_t least = choice.getMemoryLimit() - getSearchedMemory(choice);
    int64_t unexpected = fit.schedule.reserve.total() - least - candidate.besideBytes;
    if (excess > 0)
      memoryBytes = std::min(memoryBytes, candidate.peakBytes - excess - std::max<int64_t>(excess - unexpected, 0) / 2);
    return fits ? keep(candidate, std::move(planned), std::move(fit), fitsUnits) : success();
  }

  /// Schedules the best plan with updated weights gathered beside the forward pass, and kept for the backward pass,
  /// instead of at the end of the step, and with whole gradients, which are reduced in larger units. With several
  /// micro-batches for each replica, weights would be gathered for each.
  LogicalResult deferGathers() {
    if (!bestCandidate || !costs.overlapsCollectives() || !choice.pins.empty() || !choice.pipeline.hasOnePosition())
      return success();
    planner::Candidate candidate = *bestCandidate;
    plan::MeshAttr mesh = candidate.choice.mesh;
    bool hasShards = false;
    for (auto &[name, copies] : candidate.choice.parameters) {
      bool isOnDevice = copies.master.getMemory() == plan::MemoryKind::device &&
                        copies.compute.getMemory() == plan::MemoryKind::device;
      if (!plan::usesDataAxes(copies.master, mesh) || !isOnDevice)
        continue;
      copies = plan::layOutCopies(plan::gatherShards(copies.compute, mesh),
                                  {/*compute=*/true, /*gradient=*/false, /*master=*/true}, mesh);
      hasShards = true;
    }
    if (!hasShards || plan::getMicroBatches(module) > mesh.sizeOf(plan::AxisRole::replica))
      return success();
    OwningOpRef<ModuleOp> copy(module.clone());
    if (failed(apply(candidate, plan::kBucketBytes, *copy)))
      return failure();
    FittedSchedule fit;
    if (failed(makeSchedule(*copy, choice, Code::strategy, Purpose::trial, fit.schedule)))
      return failure();
    return fit.schedule.bytes <= choice.getMemoryLimit() ? keep(candidate, std::move(copy), std::move(fit), true)
                                                         : success();
  }

  /// Schedules the best plan with larger buckets of gradients, or with smaller ones, as long as that makes the step
  /// shorter: large ones use links better, small ones leave less to wait for when the last gradient is there.
  LogicalResult fitBuckets() {
    // Processors that compute and reduce in turn have nothing to overlap.
    if (!bestCandidate || !costs.overlapsCollectives() || bestCandidate->choice.mesh.getDataAxes().empty())
      return success();
    const planner::Candidate candidate = *bestCandidate;
    double begin = bestSeconds;
    for (bool growing : {true, false}) {
      auto next = [&](int64_t bytes) { return growing ? bytes * kBucketFactor : bytes / kBucketFactor; };
      for (int64_t bytes = next(plan::kBucketBytes);
           bytes >= plan::kLeastBucketBytes && bytes <= plan::kMostBucketBytes; bytes = next(bytes)) {
        double before = bestSeconds;
        if (failed(schedule(candidate, bytes)))
          return failure();
        if (bestSeconds >= before)
          break;
      }
      if (bestSeconds < begin)
        break;
    }
    return success();
  }

  /// Whether the plan's step may be shorter than the best one's, which is seldom below its own cost.
  bool isPromising(const planner::Candidate &candidate) const {
    double best = std::min(std::max(bestCost, bestSeconds), mustBeat);
    return !isBehind() && getSeconds(candidate, candidate.guessNanoseconds) < best * (1 - 1.0 / kWorthTry);
  }

  /// Estimates the seconds of a candidate's step from its cost on one position: all positions share the work, and wait
  /// while the first micro-batch fills the pipeline and the last one drains it.
  double getSeconds(const planner::Candidate &candidate, int64_t nanoseconds) const {
    int64_t microBatches = plan::getMicroBatches(module) / candidate.choice.mesh.sizeOf(plan::AxisRole::replica);
    double fill =
        static_cast<double>(positions - 1) / static_cast<double>(choice.pipeline.chunksPerPosition * microBatches);
    return nanoseconds / 1e9 / static_cast<double>(positions) * (1 + fill);
  }

  /// Whether the best plan is far from what must be beaten.
  bool isBehind() const {
    return planned && tried.size() >= kLeastTries && bestSeconds > mustBeat * (1 + 1.0 / kBehindShare);
  }

  bool hasTried(const planner::Candidate &candidate) const { return tried.count(getKey(candidate)) > 0; }

  /// The copy of the module with the best plan, before `best` changes it to fit; null where none fits.
  OwningOpRef<ModuleOp> planned;
  FittedSchedule best;
  std::optional<planner::Candidate> bestCandidate;
  /// The step of that plan by the costs of its rows, and as it is simulated.
  double bestCost = INFINITY, bestSeconds = INFINITY;
  /// The bytes, by the model's rows, in which plans are likely to fit.
  int64_t memoryBytes = INT64_MAX;

private:
  using Key = std::pair<const void *, search::Solution>;
  static Key getKey(const planner::Candidate &candidate) {
    return {candidate.choice.mesh.getAsOpaquePointer(), candidate.solution};
  }

  LogicalResult apply(const planner::Candidate &candidate, int64_t bucketBytes, ModuleOp copy) {
    // The labels do not cover everything that a pin may contradict.
    CodeScope scope(copy.getContext(), choice.pins.empty() ? Code::internal : Code::pin);
    return plans.apply(candidate.choice, copy, bucketBytes);
  }

  /// Takes a plan that fits for the best one where its step is shorter. With `fitsUnits`, larger units and kept gathers
  /// are tried for it.
  LogicalResult keep(const planner::Candidate &candidate, OwningOpRef<ModuleOp> copy, FittedSchedule fit,
                     bool fitsUnits) {
    double seconds = predictStep(*fit.schedule.module, costs).seconds;
    if (fitsUnits && seconds <= std::min(bestSeconds, mustBeat) * kWorthFitting) {
      if (failed(fitUnits(*copy, choice, Purpose::trial, fit)) || failed(fitGathers(*copy, choice, fit)))
        return failure();
      if (fit.unitBytes > 0 || fit.keepsGathers)
        seconds = predictStep(*fit.schedule.module, costs).seconds;
    }
    if (seconds >= bestSeconds)
      return success();
    bestSeconds = seconds;
    bestCost = getSeconds(candidate, candidate.costNanoseconds);
    planned = std::move(copy);
    best = std::move(fit);
    bestCandidate = candidate;
    if (fitsUnits) {
      keepsGathers = best.keepsGathers;
      unitBytes = planned->getOperation()->getAttr(plan::kUnitBytesAttr);
      if (best.unitBytes > 0)
        unitBytes = IntegerAttr::get(IntegerType::get(module.getContext(), 64), best.unitBytes);
    }
    return success();
  }

  ModuleOp module;
  const planner::PlanSearch &plans;
  const PlanChoice &choice;
  const CostModel &costs;
  double mustBeat;
  int64_t positions;
  /// The units of the best plan's weights; null where it has none.
  Attribute unitBytes;
  /// Whether the best plan keeps weights that it gathers.
  bool keepsGathers = false;
  std::set<Key> tried;
};

} // namespace

/// Searches and schedules, again with less memory where a plan takes more than the search expected. The plans of the
/// later search are scheduled before those that were found for more memory, which are likely to take too much likewise.
static LogicalResult searchAndSchedule(planner::PlanSearch &plans, planner::SearchLimits limits, ScheduleTrials &trials,
                                       std::vector<SearchSummary::Named> &named) {
  std::vector<planner::Candidate> fittingNamed, candidates;
  auto search = [&] {
    planner::SearchReport report = plans.choose(limits);
    // Later searches have less memory than the device.
    if (named.empty()) {
      for (const planner::NamedCost &each : report.named)
        named.push_back({each.name, each.costNanoseconds, each.excessBytes});
      fittingNamed = std::move(report.fittingNamed);
    }
    // How long a pipeline fills depends on the mesh.
    std::vector<std::pair<double, size_t>> order;
    for (auto [i, candidate] : llvm::enumerate(report.candidates))
      order.push_back({trials.getSeconds(candidate, candidate.guessNanoseconds), i});
    llvm::sort(order);
    std::vector<planner::Candidate> sorted;
    for (auto &[seconds, i] : order)
      sorted.push_back(std::move(report.candidates[i]));
    candidates.insert(candidates.begin(), std::make_move_iterator(sorted.begin()),
                      std::make_move_iterator(sorted.end()));
  };
  search();
  for (int tries = 0; tries < kMostTries; ++tries) {
    auto next = llvm::find_if(candidates, [&](const planner::Candidate &candidate) {
      return trials.isPromising(candidate) && !trials.hasTried(candidate);
    });
    if (next == candidates.end())
      break;
    if (failed(trials.schedule(*next)))
      return failure();
    if (trials.memoryBytes < limits.memoryBytes && trials.memoryBytes > 0) {
      limits.memoryBytes = trials.memoryBytes;
      search();
    }
  }
  if (trials.isBehind())
    return success();
  int tries = 0;
  for (const planner::Candidate &candidate : fittingNamed) {
    if (trials.hasTried(candidate))
      continue;
    // The costs of plans are above their steps by about as much.
    double best = std::max(trials.bestCost, trials.bestSeconds);
    if (trials.getSeconds(candidate, candidate.costNanoseconds) > best * (1 + 1.0 / kNamedShare) ||
        tries++ == kMostNamed)
      break;
    if (failed(trials.schedule(candidate)))
      return failure();
  }
  return failed(trials.deferGathers()) ? failure() : trials.fitBuckets();
}

/// Plans a copy of the module by a named strategy, as the last resort: it may fit where the search finds nothing that
/// fits, because the search's rows of memory take the peak of one block for that of all. Takes the thriftiest strategy
/// that suits the batch and the pins; null where none does.
static OwningOpRef<ModuleOp> planByName(ModuleOp module, const planner::PlanSearch &plans, PlanChoice &named,
                                        FittedSchedule &fit) {
  for (const plan::NamedStrategy *strategy : plan::getLastResorts()) {
    named.strategy = strategy->name.str();
    OwningOpRef<ModuleOp> planned(module.clone());
    {
      ScopedDiagnosticHandler silent(module.getContext(), [](Diagnostic &) { return success(); });
      auto add = [&](OpPassManager &manager) { manager.addPass(createStrategyPass(named)); };
      if (failed(runPasses(*planned, Code::strategy, add)))
        continue;
    }
    if (!plans.evaluate(*planned, planner::readChoice(*planned)))
      continue;
    if (failed(fitMemory(*planned, named, Purpose::trial, /*wantsLeast=*/true, /*expectedExcess=*/0, fit)))
      return {};
    return planned;
  }
  return {};
}

static planner::SearchLimits makeLimits(const PlanChoice &choice) {
  planner::SearchLimits limits;
  limits.memoryBytes = getSearchedMemory(choice);
  limits.threads = static_cast<int>(choice.searchThreads);
  limits.workLimit = choice.searchWork;
  for (const HostGroup &group : choice.cluster.hosts)
    limits.hostDevices = std::max(limits.hostDevices, group.devices);
  return limits;
}

FailureOr<FoundPlan> windlass::searchPlan(ModuleOp module, const PlanChoice &choice, llvm::StringRef precision,
                                          llvm::function_ref<LogicalResult(planner::PlanSearch &)> begin,
                                          double mustBeat) {
  MLIRContext *context = module.getContext();
  CostModel costs(choice.cluster, choice.profile.get(), precision.str());
  FoundPlan found;
  SearchSummary &summary = found.summary;
  summary.assumptions = costs.getAssumptions();
  planner::SearchLimits limits = makeLimits(choice);
  CodeScope scope(context, Code::strategy);
  auto plans = planner::PlanSearch::create(module, choice.getPositionRanks(), costs, limits.threads, choice.pins);
  if (failed(plans))
    return failure();
  summary.meshes = (*plans)->countMeshes();
  (*plans)->setBesideBytes([&](const plan::StrategyChoice &mesh) { return expectCommunication(mesh, choice.cluster); });
  if (begin && failed(begin(**plans)))
    return failure();
  ScheduleTrials trials(module, **plans, choice, costs, mustBeat);
  if (failed(searchAndSchedule(**plans, limits, trials, summary.named)))
    return failure();
  FittedSchedule &best = trials.best;
  plan::StrategyChoice chosen;
  int recomputeParts = 0;
  if (trials.bestCandidate) {
    chosen = trials.bestCandidate->choice;
    recomputeParts = trials.bestCandidate->recomputeParts;
  }
  found.planned = std::move(trials.planned);
  // The bound holds for plans that the rows of memory admit, which must include this one.
  bool isBounded = bool(found.planned);
  bool isPipeline = !choice.pipeline.hasOnePosition();
  if (isBounded || isPipeline)
    found.bounded = (*plans)->getProblems(getSearchedMemory(choice), choice.pipeline.positions);
  if (!isBounded && isPipeline) {
    found.refuse = [context, stages = choice.pipeline.positions, limit = choice.getMemoryLimit()]() -> LogicalResult {
      return emitError(context, Code::memory) << "no plan of " << stages << " stages was found that fits into "
                                              << std::to_string(limit) << " bytes per device; choose other --stages or "
                                              << "give a higher --memory-limit";
    };
    return found;
  }
  if (!isBounded) {
    PlanChoice named = choice;
    found.planned = planByName(module, **plans, named, best);
    if (!found.planned) {
      found.refuse = [context, limit = choice.getMemoryLimit()]() -> LogicalResult {
        return emitError(context, Code::memory)
               << "no plan was found that obeys the pins and fits into " << std::to_string(limit)
               << " bytes per device; change the pins or give a higher --memory-limit";
      };
      return found;
    }
    if (best.schedule.bytes > choice.getMemoryLimit()) {
      found.planned = nullptr;
      found.refuse = [module, named, least = std::make_shared<Schedule>(std::move(best.schedule))] {
        return failForMemory(module, named, *least);
      };
      return found;
    }
    if (failed(fitUnits(*found.planned, choice, Purpose::trial, best)))
      return failure();
    chosen = planner::readChoice(*found.planned);
  }
  best.apply(*found.planned);
  if (failed(plan::checkPins(*found.planned, choice.pins)))
    return failure();
  std::optional<int64_t> cost = (*plans)->evaluate(*found.planned, chosen);
  if (!cost)
    return emitError(context, Code::internal) << "the plan is none that the search knows";
  summary.problem = (*plans)->getProblem(chosen, recomputeParts, getSearchedMemory(choice));
  summary.stages = choice.pipeline.positions;
  summary.costNanoseconds = *cost;
  summary.stepSeconds = predictStep(*best.schedule.module, costs).seconds;
  found.mesh = chosen.mesh;
  found.schedule = std::move(best.schedule);
  return found;
}
