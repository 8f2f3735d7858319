// --strategy auto: the search, and what its plans take when they are scheduled.
#include "Claims.h"
#include "FitMemory.h"

#include "windlass/Pipeline/Verbs.h"
#include "windlass/Planner/ChoosePlan.h"

#include <chrono>

using namespace mlir;
using namespace windlass;

/// So many plans are scheduled, to see what memory they take and what is run again in them.
static constexpr int kMostTries = 5;
/// Bytes of gradients that are reduced together.
static constexpr int64_t kBucketBytes = 4 << 20;

int Compilation::searchPlan(const PlanChoice &choice) {
  if (!choice.pins.empty())
    return fail(Code::usage, "--pin needs a named strategy: give --strategy ddp or another one");
  cluster = choice.cluster;
  OwningOpRef<ModuleOp> unplanned(module->clone());
  auto begin = std::chrono::steady_clock::now();
  CostModel costs(cluster, choice.profile.get());
  search.emplace();
  search->assumptions = costs.getAssumptions();
  planner::SearchLimits limits;
  limits.memoryBytes = choice.getMemoryLimit();
  limits.threads = static_cast<int>(choice.searchThreads);
  limits.workLimit = choice.searchWork;
  for (const HostGroup &group : cluster.hosts)
    limits.hostDevices = std::max(limits.hostDevices, group.devices);
  std::vector<planner::SearchedMesh> meshes;
  Fit best;
  plan::StrategyChoice bestChoice, leastChoice;
  int64_t leastBytes = INT64_MAX;
  int64_t bestCost = INT64_MAX;
  for (int tries = 0; tries < kMostTries && limits.memoryBytes > 0 && !best.schedule.module;) {
    FailureOr<planner::SearchReport> report = planner::choosePlans(*module, cluster.getDevices(), costs, limits);
    if (failed(report))
      return fail(Code::strategy, "no plan was found");
    // Later searches have less memory than there is.
    if (meshes.empty()) {
      meshes = std::move(report->meshes);
      for (const planner::NamedCost &named : report->named)
        search->named.push_back({named.name, named.costNanoseconds, named.excessBytes});
    }
    if (report->candidates.empty())
      break;
    int64_t memory = limits.memoryBytes;
    for (const planner::Candidate &candidate : report->candidates) {
      if (candidate.leastNanoseconds >= bestCost || tries++ == kMostTries)
        break;
      if (failed(plan::applyStrategy(*module, candidate.choice, kBucketBytes)))
        return kInternal;
      Fit fit;
      // The excess is over what the candidate's rows say, so of as many blocks run again.
      if (int code = fitMemory(*module, choice, /*wantsLeast=*/candidate.rerunsBlocks, fit))
        return code;
      int64_t excess = fit.schedule.bytes - choice.getMemoryLimit();
      if (excess > 0) {
        // What it takes beside the rows of the model is known now.
        memory = std::min(memory, std::min(limits.memoryBytes, candidate.peakBytes) - excess);
        if (fit.schedule.bytes < leastBytes) {
          leastBytes = fit.schedule.bytes;
          leastChoice = candidate.choice;
        }
        continue;
      }
      int64_t cost =
          candidate.leastNanoseconds + getRerunNanoseconds(*module, fit.schedule.rerun, costs, compiled.precision);
      if (cost < bestCost) {
        bestCost = cost;
        best = std::move(fit);
        bestChoice = candidate.choice;
        search->problem = candidate.problem;
      }
    }
    limits.memoryBytes = memory;
  }
  if (!best.schedule.module) {
    search.reset();
    if (leastBytes < INT64_MAX) {
      Fit least;
      if (failed(plan::applyStrategy(*module, leastChoice, kBucketBytes)))
        return kInternal;
      if (int code = fitMemory(*module, choice, /*wantsLeast=*/true, least))
        return code;
      return failForMemory(*unplanned, choice, least.schedule);
    }
    // Nothing fits even in the search's own model: say what the thriftiest named strategy would take.
    PlanChoice named = choice;
    named.strategy = "zero3";
    return makePlan(named, createStrategyPass(named), /*mayRerun=*/true);
  }
  if (failed(plan::applyStrategy(*module, bestChoice, kBucketBytes)))
    return kInternal;
  best.apply(*module);
  search->costNanoseconds = bestCost;
  search->meshes = meshes.size();
  certify(std::move(meshes), best.schedule.rerun, limits.threads, *search);
  search->searchSeconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  scheduled = std::move(best.schedule);
  return keepPlan(choice);
}
