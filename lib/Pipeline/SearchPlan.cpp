#include "SearchPlan.h"

#include "FailForMemory.h"
#include "FitMemory.h"
#include "PlanByName.h"
#include "Reserve.h"
#include "ScheduleTrials.h"

#include "windlass/Dialect/Plan/Transforms/NamedStrategies.h"
#include "windlass/Dialect/Plan/Transforms/Pins.h"
#include "windlass/Simulator/PredictStep.h"

using namespace mlir;
using namespace windlass;

/// The most plans of the search that are scheduled, to see how much memory they need and what they recompute.
static constexpr int kMostTries = 6;
/// The most named strategies that are scheduled besides.
static constexpr int kMostNamed = 4;

/// Searches and schedules, again with less memory where a plan takes more than the search expected. The plans of the
/// later search are scheduled before those that were found for more memory, which are likely to take too much likewise.
/// Returns whether the search found plans that fit by its rows of memory.
static FailureOr<bool> searchAndSchedule(planner::PlanSearch &plans, planner::SearchLimits limits,
                                         ScheduleTrials &trials, std::vector<SearchSummary::Named> &named) {
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
  bool isFound = !candidates.empty() || !fittingNamed.empty();
  for (int tries = 0; tries < kMostTries;) {
    std::vector<planner::Candidate> next;
    for (const planner::Candidate &candidate : candidates)
      if (next.size() < ScheduleTrials::kAtOnce && trials.isPromising(candidate) && trials.take(candidate))
        next.push_back(candidate);
    if (next.empty())
      break;
    tries += static_cast<int>(next.size());
    if (failed(trials.schedule(next)))
      return failure();
    if (trials.memoryBytes < limits.memoryBytes && trials.memoryBytes > 0) {
      limits.memoryBytes = trials.memoryBytes;
      search();
    }
  }
  if (trials.isBehind())
    return isFound;
  llvm::erase_if(fittingNamed, [&](const planner::Candidate &candidate) { return !trials.take(candidate); });
  for (int tries = 0; tries < kMostNamed; tries += ScheduleTrials::kAtOnce) {
    auto isNear = [&](const planner::Candidate &candidate) { return trials.isNear(candidate); };
    auto next = ArrayRef(fittingNamed).drop_front(std::min<size_t>(tries, fittingNamed.size()));
    next = next.take_front(ScheduleTrials::kAtOnce).take_while(isNear);
    if (next.empty())
      break;
    if (failed(trials.schedule(next)))
      return failure();
  }
  if (failed(trials.deferGathers()) || failed(trials.fitBuckets()))
    return failure();
  return isFound;
}

/// Plans a copy of the module by a named strategy, as the last resort: it may fit where the search finds nothing that
/// fits, because the search's rows of memory take the peak of one block for that of all. Takes the thriftiest strategy
/// that suits the batch and the pins, and whose cost is below `mustBeat` seconds; null where none does.
static OwningOpRef<ModuleOp> planByLastResort(ModuleOp module, const planner::PlanSearch &plans, PlanChoice &named,
                                              double mustBeat, FittedSchedule &fit) {
  for (const plan::NamedStrategy *strategy : plan::getLastResorts()) {
    named.strategy = strategy->name.str();
    OwningOpRef<ModuleOp> planned(module.clone());
    {
      ScopedDiagnosticHandler silent(module.getContext(), [](Diagnostic &) { return success(); });
      if (failed(planByName(*planned, named)))
        continue;
    }
    // How much too much it takes does not matter where more may go to the host.
    bool mayOffloadMore = named.searchesOffload && named.offload != plan::Offload::disk;
    if (mayOffloadMore && getHeldBytes(*planned) > named.getMemoryLimit())
      continue;
    std::optional<int64_t> cost = plans.evaluate(*planned, planner::readChoice(*planned));
    if (!cost || static_cast<double>(*cost) / 1e9 >= mustBeat)
      continue;
    if (failed(fitMemory(*planned, named, /*wantsLeast=*/true, /*expectedExcess=*/0, fit)))
      return {};
    return planned;
  }
  return {};
}

/// Returns a function that reports that no plan of `stages` stages fits into `limit` bytes, and fails.
static std::function<LogicalResult()> refuseStages(MLIRContext *context, int64_t stages, int64_t limit) {
  return [=]() -> LogicalResult {
    return emitError(context, Code::memory) << "no plan of " << stages << " stages was found that fits into "
                                            << std::to_string(limit) << " bytes per device; choose other --stages or "
                                            << "give a higher --memory-limit";
  };
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
  if (choice.offload == plan::Offload::disk && !costs.getDiskAssumption().empty())
    summary.assumptions.push_back(costs.getDiskAssumption());
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
  FailureOr<bool> isFound = searchAndSchedule(**plans, limits, trials, summary.named);
  if (failed(isFound))
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
    found.bounded = (*plans)->getProblems(getSearchedMemory(choice),
                                          module->getAttrOfType<plan::PipelineAttr>(plan::kPipelineAttr));
  if (!isBounded && mustBeat < INFINITY && *isFound)
    return found;
  if (!isBounded && isPipeline) {
    found.refuse = refuseStages(context, choice.pipeline.positions, choice.getMemoryLimit());
    return found;
  }
  if (!isBounded) {
    PlanChoice named = choice;
    found.planned = planByLastResort(module, **plans, named, mustBeat, best);
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
    if (failed(fitSizes(*found.planned, choice, best)))
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
