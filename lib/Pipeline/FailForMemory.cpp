#include "FailForMemory.h"

#include "FitMemory.h"

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

LogicalResult windlass::failForMemory(ModuleOp unplanned, const PlanChoice &choice, const Schedule &least) {
  int64_t limit = choice.getMemoryLimit();
  std::vector<std::string> options = {"--memory-limit " + std::to_string(least.bytes)};
  for (int64_t factor : kFactors) {
    PlanChoice other = choice;
    other.cluster = enlarge(choice.cluster, factor);
    if (options.size() > 1 || other.cluster.getDevices() > Cluster::kMaxDevices)
      break;
    // Trials use more devices as they are used now, or such that each holds least.
    std::set<std::string> strategies = {choice.strategy, plan::getLastResorts().front()->name.str()};
    strategies.erase("auto");
    if (factor == 1) {
      for (const plan::NamedStrategy &each : plan::getNamedStrategies())
        strategies.insert(each.name.str());
      // This strategy is the one that does not fit.
      strategies.erase(choice.strategy);
    }
    // A strategy that fits on fewer devices fits on more.
    for (const std::string &strategy : strategies) {
      other.strategy = strategy;
      FittedSchedule fit;
      if (options.size() > 1 || !tryStrategy(unplanned, other, fit))
        continue;
      options.push_back((factor == 1 ? "" : other.cluster.describe() + " with ") + "--strategy " + strategy + " (" +
                        exactSizeText(fit.schedule.bytes) + ", " + describeTries(fit.schedule) + ")");
    }
  }
  return emitError(unplanned.getContext(), Code::memory)
         << "the plan needs " + exactSizeText(least.bytes) + " per device, " + exactSizeText(least.reserve.total()) +
                " of them besides its arena, with " + describeTries(least) + ", but the limit is " +
                exactSizeText(limit) + "; it is " + exactSizeText(least.bytes - limit) +
                " too much; these would fit: " + llvm::join(options, "; ");
}
