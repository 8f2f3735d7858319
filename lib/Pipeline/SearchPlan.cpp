// --strategy auto: the search, and what its plans take when they are scheduled.
#include "FitMemory.h"
#include "RunPasses.h"
#include "windlass/Pipeline/Claims.h"

#include "windlass/Commands/Commands.h"
#include "windlass/Planner/ChoosePlan.h"
#include "windlass/Search/Certificate.h"

#include <chrono>
#include <cmath>
#include <set>

using namespace mlir;
using namespace windlass;

/// So many plans are scheduled, to see what memory they take and what is run again in them.
static constexpr int kMostTries = 5;
/// Plans that can save no more than one part in so many are not.
static constexpr int kWorthTry = 50;
/// So many named strategies too, of those whose cost is above the time of the best plan by one part in `kNamedShare` at
/// most.
static constexpr int kMostNamed = 2, kNamedShare = 10;

namespace {

/// Schedules plans, and keeps the one whose step is shortest when it is simulated.
class Trials {
public:
  Trials(ModuleOp module, const PlanChoice &choice, const CostModel &costs)
      : module(module), choice(choice), costs(costs) {}

  /// An exit code.
  int schedule(const planner::Candidate &candidate) {
    tried.insert(getKey(candidate));
    // The labels do not know all that a pin may contradict.
    if (failed(plan::applyStrategy(module, candidate.choice, plan::kBucketBytes)))
      return choice.pins.empty() ? int(kInternal) : exitCodeOf(Code::pin);
    Fit fit;
    // The excess is over what the candidate's rows say, so of as many blocks run again.
    int64_t expectedExcess = candidate.rerunParts > 0 ? candidate.keptPeakBytes - choice.getMemoryLimit() : 0;
    if (int code = fitMemory(module, choice, /*wantsLeast=*/candidate.rerunParts > 0, expectedExcess, fit))
      return code;
    int64_t excess = fit.schedule.bytes - choice.getMemoryLimit();
    bool fits = excess <= 0;
    if (candidate.rerunParts == 0 && (fit.schedule.rerun.flops > 0 || fit.schedule.hasDroppedPrefetch))
      excess = fit.excessBytes;
    // What it takes beside the rows of the model is known now. The next plan is likely to have the same reserve, and to
    // take a little more of the rest.
    int64_t least = choice.getMemoryLimit() - getSearchedMemory(choice);
    int64_t unexpected = fit.schedule.reserve.total() - least - candidate.besideBytes;
    if (excess > 0)
      memoryBytes = std::min(memoryBytes, candidate.peakBytes - excess - std::max<int64_t>(excess - unexpected, 0) / 2);
    if (fits)
      keep(candidate, std::move(fit));
    return kDone;
  }

  /// Whether the plan's step may be shorter than the best one's, which is seldom below its own cost.
  bool isPromising(const planner::Candidate &candidate) const {
    double best = std::max(static_cast<double>(bestCost), bestSeconds * 1e9);
    return static_cast<double>(candidate.guessNanoseconds) < best * (1 - 1.0 / kWorthTry);
  }

  bool hasTried(const planner::Candidate &candidate) const { return tried.count(getKey(candidate)) > 0; }

  /// The best of all; without a module where none fits.
  Fit best;
  plan::StrategyChoice bestChoice;
  int bestRerunParts = 0;
  int64_t bestCost = INT64_MAX;
  double bestSeconds = INFINITY;
  /// In as much by the model's rows, plans are likely to fit.
  int64_t memoryBytes = INT64_MAX;

private:
  using Key = std::pair<std::vector<int64_t>, search::Solution>;
  static Key getKey(const planner::Candidate &candidate) {
    return {{candidate.choice.groups, candidate.choice.batchParts, candidate.choice.modelRanks}, candidate.solution};
  }

  void keep(const planner::Candidate &candidate, Fit fit) {
    double seconds = predictStep(*fit.schedule.module, costs).seconds;
    if (seconds >= bestSeconds)
      return;
    bestSeconds = seconds;
    bestCost = candidate.costNanoseconds;
    best = std::move(fit);
    bestChoice = candidate.choice;
    bestRerunParts = candidate.rerunParts;
  }

  ModuleOp module;
  const PlanChoice &choice;
  const CostModel &costs;
  std::set<Key> tried;
};

} // namespace

/// The search, again with less memory where a plan takes more than the search thought. What that finds is scheduled
/// before what was found for more memory, which is likely to take too much likewise.
static int searchAndSchedule(planner::PlanSearch &plans, planner::SearchLimits limits, Trials &trials,
                             std::vector<SearchSummary::Named> &named) {
  std::vector<planner::Candidate> fittingNamed, candidates;
  auto search = [&] {
    planner::SearchReport report = plans.choose(limits);
    // Later searches have less memory than there is.
    if (named.empty()) {
      for (const planner::NamedCost &each : report.named)
        named.push_back({each.name, each.costNanoseconds, each.excessBytes});
      fittingNamed = std::move(report.fittingNamed);
    }
    candidates.insert(candidates.begin(), std::make_move_iterator(report.candidates.begin()),
                      std::make_move_iterator(report.candidates.end()));
  };
  search();
  for (int tries = 0; tries < kMostTries; ++tries) {
    auto next = llvm::find_if(candidates, [&](const planner::Candidate &candidate) {
      return trials.isPromising(candidate) && !trials.hasTried(candidate);
    });
    if (next == candidates.end())
      break;
    if (int code = trials.schedule(*next))
      return code;
    if (trials.memoryBytes < limits.memoryBytes && trials.memoryBytes > 0) {
      limits.memoryBytes = trials.memoryBytes;
      search();
    }
  }
  int tries = 0;
  for (const planner::Candidate &candidate : fittingNamed) {
    double seconds = static_cast<double>(candidate.costNanoseconds) / 1e9;
    if (trials.hasTried(candidate))
      continue;
    if (seconds > trials.bestSeconds * (1 + 1.0 / kNamedShare) || tries++ == kMostNamed)
      break;
    if (int code = trials.schedule(candidate))
      return code;
  }
  return kDone;
}

static bool applyNamed(ModuleOp module, const PlanChoice &named) {
  ScopedDiagnosticHandler silent(module.getContext(), [](Diagnostic &) { return success(); });
  return runPasses(module, Code::strategy,
                   [&](OpPassManager &manager) { manager.addPass(createStrategyPass(named)); }) == kDone;
}

/// The last resort: a named strategy may fit where the search finds nothing that does, since its rows of memory take a
/// block's peak for that of all. Takes the thriftiest one that suits the batch and the pins, and plans the module by
/// it; false where none does.
static bool planByName(ModuleOp module, planner::PlanSearch &plans, PlanChoice &named, Fit &fit) {
  for (const char *strategy : {"zero3", "megatron"}) {
    named.strategy = strategy;
    if (applyNamed(module, named) && plans.evaluate(planner::readChoice(module)))
      return fitMemory(module, named, /*wantsLeast=*/true, /*expectedExcess=*/0, fit) == kDone;
  }
  return false;
}

int Compilation::startFrom(planner::PlanSearch &plans, const plan::PlanFile &start) {
  if (start.cluster.getDevices() != cluster.getDevices())
    return fail(Code::plan_mismatch, "the plan to start from is for " + std::to_string(start.cluster.getDevices()) +
                                         " ranks, but --cluster has " + std::to_string(cluster.getDevices()));
  if (int code = putPlan(start, "the plan to start from"))
    return code;
  if (!plans.startFrom("the older plan"))
    llvm::errs() << "windlass: the plan to start from has something that is not searched: it is left out\n";
  return kDone;
}

int Compilation::searchPlan(const PlanChoice &choice) {
  cluster = choice.cluster;
  OwningOpRef<ModuleOp> unplanned(module->clone());
  auto begin = std::chrono::steady_clock::now();
  CostModel costs(cluster, choice.profile.get(), compiled.precision);
  search.emplace();
  search->assumptions = costs.getAssumptions();
  planner::SearchLimits limits;
  limits.memoryBytes = getSearchedMemory(choice);
  limits.threads = static_cast<int>(choice.searchThreads);
  limits.workLimit = choice.searchWork;
  for (const HostGroup &group : cluster.hosts)
    limits.hostDevices = std::max(limits.hostDevices, group.devices);
  CodeScope scope(module->getContext(), Code::strategy);
  auto plans = planner::PlanSearch::create(*module, cluster.getDevices(), costs, limits.threads, choice.pins);
  if (failed(plans))
    return exitCodeOf(Code::strategy);
  search->meshes = (*plans)->countMeshes();
  (*plans)->setBesideBytes([&](const plan::StrategyChoice &mesh) { return expectCommunication(mesh, cluster); });
  if (choice.start)
    if (int code = startFrom(**plans, *choice.start))
      return code;
  Trials trials(*module, choice, costs);
  if (int code = searchAndSchedule(**plans, limits, trials, search->named))
    return code;
  Fit &best = trials.best;
  plan::StrategyChoice mesh = trials.bestChoice;
  // What is bounded are plans that the rows of memory admit, with this one among them.
  bool isBounded = bool(best.schedule.module);
  if (!best.schedule.module) {
    PlanChoice named = choice;
    if (!planByName(*module, **plans, named, best))
      return fail(Code::memory, "no plan was found that obeys the pins and fits into " +
                                    std::to_string(choice.getMemoryLimit()) +
                                    " bytes per device; change the pins or give a higher --memory-limit");
    if (best.schedule.bytes > choice.getMemoryLimit())
      return failForMemory(*unplanned, named, best.schedule);
    mesh = planner::readChoice(*module);
  } else if (failed(plan::applyStrategy(*module, trials.bestChoice, plan::kBucketBytes))) {
    return kInternal;
  }
  best.apply(*module);
  if (failed(plan::checkPins(*module, choice.pins)))
    return exitCodeOf(Code::pin);
  std::optional<int64_t> cost = (*plans)->evaluate(mesh);
  if (!cost)
    return fail(Code::internal, "the plan is none that the search knows");
  search->problem = (*plans)->getProblem(mesh, trials.bestRerunParts, getSearchedMemory(choice));
  search->costNanoseconds = *cost;
  if (isBounded)
    certify((*plans)->getProblems(getSearchedMemory(choice)), mesh, limits.threads, *search);
  else
    search->certificate = search::printCertificates({});
  search->searchSeconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  scheduled = std::move(best.schedule);
  return keepPlan(choice);
}
