// --strategy auto: the search, and what its plans take when they are scheduled.
#include "FitMemory.h"

#include "windlass/Pipeline/Verbs.h"
#include "windlass/Planner/ChoosePlan.h"

#include <chrono>

using namespace mlir;
using namespace windlass;

/// A plan that takes more than the search thought is searched again so often, with that much less memory.
static constexpr int kMostRounds = 4;
/// Bytes of gradients that are reduced together.
static constexpr int64_t kBucketBytes = 4 << 20;

int Compilation::searchPlan(const PlanChoice &choice) {
  if (!choice.pins.empty())
    return fail(Code::usage, "--pin needs a named strategy: give --strategy ddp or another one");
  cluster = choice.cluster;
  OwningOpRef<ModuleOp> unplanned(module->clone());
  auto begin = std::chrono::steady_clock::now();
  CostModel costs(cluster);
  search.emplace();
  search->assumptions = costs.getAssumptions();
  planner::SearchLimits limits;
  limits.memoryBytes = choice.getMemoryLimit();
  for (const HostGroup &group : cluster.hosts)
    limits.hostDevices = std::max(limits.hostDevices, group.devices);
  Fit best;
  int64_t bestCost = INT64_MAX;
  Schedule least;
  for (int round = 0; round < kMostRounds && limits.memoryBytes > 0; ++round) {
    FailureOr<planner::SearchReport> report = planner::choosePlans(*module, cluster.getDevices(), costs, limits);
    if (failed(report))
      return fail(Code::strategy, "no plan was found");
    ++search->rounds;
    search->meshes = report->meshes;
    // Of the first round alone: later ones have less memory than there is.
    if (round == 0) {
      search->boundSeconds = report->boundPicoseconds / 1e12;
      for (const planner::NamedCost &named : report->named)
        search->named.push_back({named.name, named.costPicoseconds / 1e12, named.excessBytes});
    }
    if (report->candidates.empty())
      break;
    const planner::Candidate &candidate = report->candidates.front();
    if (failed(plan::applyStrategy(*module, candidate.choice, kBucketBytes)))
      return kInternal;
    Fit fit;
    if (int code = fitMemory(*module, choice, /*wantsLeast=*/true, fit))
      return code;
    if (fit.schedule.bytes <= choice.getMemoryLimit()) {
      fit.apply(*module);
      best = std::move(fit);
      bestCost = candidate.costPicoseconds;
      break;
    }
    limits.memoryBytes -= fit.schedule.bytes - choice.getMemoryLimit();
    if (!least.module || fit.schedule.bytes < least.bytes)
      least = std::move(fit.schedule);
  }
  search->searchSeconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  if (!best.schedule.module) {
    if (!least.module) {
      // Nothing fits even in the search's own model: say what the thriftiest named strategy would take.
      PlanChoice named = choice;
      named.strategy = "zero3";
      search.reset();
      return makePlan(named, createStrategyPass(named), /*mayRerun=*/true);
    }
    return failForMemory(*unplanned, choice, least);
  }
  search->costSeconds = bestCost / 1e12;
  scheduled = std::move(best.schedule);
  return keepPlan(choice);
}
