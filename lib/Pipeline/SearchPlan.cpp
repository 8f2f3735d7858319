// --strategy auto: the search, and what its plans take when they are scheduled.
#include "Claims.h"
#include "FitMemory.h"
#include "RunPasses.h"

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
  auto plans = planner::PlanSearch::create(*module, cluster.getDevices(), costs);
  if (failed(plans))
    return fail(Code::strategy, "no plan was found");
  search->meshes = (*plans)->countMeshes();
  Fit best;
  plan::StrategyChoice bestChoice;
  int64_t bestCost = INT64_MAX;
  for (int tries = 0; tries < kMostTries && limits.memoryBytes > 0 && !best.schedule.module;) {
    planner::SearchReport report = (*plans)->choose(limits);
    // Later searches have less memory than there is.
    if (search->named.empty())
      for (const planner::NamedCost &named : report.named)
        search->named.push_back({named.name, named.costNanoseconds, named.excessBytes});
    if (report.candidates.empty())
      break;
    int64_t memory = limits.memoryBytes;
    for (const planner::Candidate &candidate : report.candidates) {
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
    // The thriftiest named strategy may fit all the same: the model of a search takes a block's peak for that of all.
    PlanChoice named = choice;
    named.strategy = "zero3";
    auto add = [&](OpPassManager &manager) { manager.addPass(createStrategyPass(named)); };
    if (int code = runPasses(*module, Code::strategy, add))
      return code;
    if (int code = fitMemory(*module, choice, /*wantsLeast=*/true, best))
      return code;
    if (best.schedule.bytes > choice.getMemoryLimit())
      return failForMemory(*unplanned, named, best.schedule);
    plan::StrategyChoice its = planner::readChoice(*module);
    std::optional<int64_t> cost = planner::evaluatePlan(*module, its, costs);
    if (!cost)
      return fail(Code::internal, "zero3 is no plan that the search knows");
    bestCost = *cost + getRerunNanoseconds(*module, best.schedule.rerun, costs, compiled.precision);
    for (planner::SearchedMesh &mesh : (*plans)->getProblems(choice.getMemoryLimit()))
      if (mesh.choice.groups == its.groups && mesh.choice.batchParts == its.batchParts &&
          mesh.choice.modelRanks == its.modelRanks)
        search->problem = std::move(mesh.problem);
  } else if (failed(plan::applyStrategy(*module, bestChoice, kBucketBytes))) {
    return kInternal;
  }
  best.apply(*module);
  search->costNanoseconds = bestCost;
  bool rerunsBlocks = best.schedule.rerun.flops > 0;
  certify((*plans)->getProblems(rerunsBlocks ? planner::SearchLimits::kUnlimited : choice.getMemoryLimit()),
          limits.threads, *search);
  search->searchSeconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  scheduled = std::move(best.schedule);
  return keepPlan(choice);
}
