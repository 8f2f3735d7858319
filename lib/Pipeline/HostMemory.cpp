#include "HostMemory.h"

#include "windlass/Dialect/Sched/IR/Place.h"
#include "windlass/Dialect/Sched/IR/Programs.h"
#include "windlass/Support/Words.h"

using namespace mlir;
using namespace windlass;

/// Returns the bytes of the host's memory that each device may have: an equal part, of which CPU ranks have taken
/// `taken` bytes already. Nothing where the cluster does not state it.
static std::optional<int64_t> getHostPart(const Cluster &cluster, int64_t taken) {
  std::optional<int64_t> least;
  for (const HostGroup &group : cluster.hosts) {
    if (!group.memoryBytes)
      continue;
    bool isShared = !cluster.deviceTypes.at(group.deviceType).memoryBytes;
    int64_t part = *group.memoryBytes / group.devices - (isShared ? taken : 0);
    least = std::min(least.value_or(part), part);
  }
  return least;
}

LogicalResult windlass::checkHostMemory(Schedule &schedule, const Cluster &cluster) {
  int64_t bytes = 0;
  for (sched::ProgramOp program : sched::getPrograms(*schedule.module))
    if (sched::ArenaOp arena = sched::getArena(program, plan::MemoryKind::host))
      bytes = std::max<int64_t>(bytes, arena.getBytes());
  std::optional<int64_t> part = getHostPart(cluster, schedule.bytes);
  if (bytes == 0 || !part || bytes <= *part)
    return success();
  return emitError(schedule.module->getContext(), Code::memory)
         << "the plan needs " << exactSizeText(bytes)
         << " of the host's memory per device, but each device's part of it is "
         << exactSizeText(std::max<int64_t>(*part, 0))
         << "; use more hosts, shard the optimizer's state over more ranks, or leave --offload out";
}
