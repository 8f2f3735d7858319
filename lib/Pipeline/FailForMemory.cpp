#include "FailForMemory.h"

#include "FitMemory.h"
#include "HostMemory.h"

#include "windlass/Support/Words.h"

#include "windlass/Dialect/Plan/Transforms/NamedStrategies.h"
#include "windlass/Dialect/Plan/Transforms/Segments.h"
#include "windlass/Dialect/Sched/IR/SchedOps.h"

#include "llvm/Support/FormatVariadic.h"

#include <set>

using namespace mlir;
using namespace windlass;

/// The factors by which the number of devices is multiplied in trials.
static constexpr int64_t kFactors[] = {1, 2, 4, 8};

static std::string describeTries(const Schedule &schedule) {
  const RecomputeReport &recompute = schedule.recompute;
  std::string text = schedule.hasDroppedPrefetch ? "no weight gathered ahead, " : "";
  if (recompute.flops == 0)
    return text + "nothing recomputed";
  return text + llvm::formatv("{0} of {1} blocks recomputed, {2:f1} % more FLOPs", recompute.countBlocks(),
                              recompute.segments.size(), 100 * recompute.flops / recompute.flopsBefore)
                    .str();
}

/// Returns a cluster with `factor` times as many hosts; for CPU ranks, with as many more devices on the same hosts.
static Cluster enlarge(Cluster cluster, int64_t factor) {
  for (HostGroup &group : cluster.hosts)
    (cluster.getBackend() == "cpu" ? group.devices : group.count) *= factor;
  cluster.deviceOrder.clear();
  return cluster;
}

/// Returns the text of the option to choose the first of `strategies` whose plan fits, with `prefix` in front; nothing
/// where no plan fits.
static std::optional<std::string> findFit(ModuleOp unplanned, PlanChoice choice,
                                          const std::set<std::string> &strategies, const std::string &prefix) {
  for (const std::string &strategy : strategies) {
    choice.strategy = strategy;
    FittedSchedule fit;
    if (tryStrategy(unplanned, choice, fit) && getHostNeed(fit.schedule, choice.cluster).fits())
      return prefix + "--strategy " + strategy + " (" + exactSizeText(fit.schedule.bytes) + ", " +
             describeTries(fit.schedule) + ")";
  }
  return std::nullopt;
}

LogicalResult windlass::failForMemory(ModuleOp unplanned, const PlanChoice &choice, const Schedule &least) {
  int64_t limit = choice.getMemoryLimit();
  std::vector<std::string> options = {"--memory-limit " + std::to_string(least.bytes)};
  std::set<std::string> named;
  // Strategies that decide themselves what the host holds are there to be compared with: `--offload` does as well.
  for (const plan::NamedStrategy &each : plan::getNamedStrategies())
    if (!each.tiers)
      named.insert(each.name.str());
  for (int64_t factor : kFactors) {
    PlanChoice other = choice;
    other.cluster = enlarge(choice.cluster, factor);
    if (options.size() > 1 || other.cluster.getDevices() > Cluster::kMaxDevices)
      break;
    // Trials use more devices as they are used now, or such that each holds least.
    std::set<std::string> strategies = {choice.strategy, plan::getLastResorts().front()->name.str()};
    strategies.erase("auto");
    if (factor == 1) {
      strategies = named;
      // This strategy is the one that does not fit.
      strategies.erase(choice.strategy);
    }
    // A strategy that fits on fewer devices fits on more.
    if (auto fit = findFit(unplanned, other, strategies, factor == 1 ? "" : other.cluster.describe() + " with "))
      options.push_back(*fit);
  }
  if (choice.strategy != "auto" && !plan::findTierRule(choice.strategy))
    named.insert(choice.strategy);
  for (plan::Offload offload : plan::kOffloads) {
    // Named strategies have no search that could choose some.
    if (offload <= choice.offload || offload == plan::Offload::some)
      continue;
    OwningOpRef<ModuleOp> offloaded(unplanned.clone());
    plan::applyOffload(*offloaded, offload);
    if (auto fit = findFit(*offloaded, choice, named, ("--offload " + plan::stringifyOffload(offload) + " ").str())) {
      options.push_back(*fit);
      break;
    }
  }
  return emitError(unplanned.getContext(), Code::memory)
         << "the plan needs " + exactSizeText(least.bytes) + " per device, " + exactSizeText(least.reserve.total()) +
                " of them besides its arena, with " + describeTries(least) + ", but the limit is " +
                exactSizeText(limit) + "; it is " + exactSizeText(least.bytes - limit) +
                " too much; these would fit: " + llvm::join(options, "; ");
}
