#include "HostMemory.h"

#include "windlass/Dialect/Sched/IR/Place.h"
#include "windlass/Dialect/Sched/IR/Programs.h"
#include "windlass/Support/Words.h"

using namespace mlir;
using namespace windlass;

HostNeed windlass::getHostNeed(Schedule &schedule, const Cluster &cluster) {
  HostNeed need;
  for (sched::ProgramOp program : sched::getPrograms(*schedule.module))
    if (sched::ArenaOp arena = sched::getArena(program, plan::MemoryKind::host))
      need.bytes = std::max<int64_t>(need.bytes, arena.getBytes());
  for (const HostGroup &group : cluster.hosts) {
    if (!group.memoryBytes)
      continue;
    bool isShared = !cluster.deviceTypes.at(group.deviceType).memoryBytes;
    int64_t part = *group.memoryBytes / group.devices - (isShared ? schedule.bytes : 0);
    need.part = std::min(need.part.value_or(part), part);
  }
  return need;
}

LogicalResult windlass::checkHostMemory(Schedule &schedule, const Cluster &cluster) {
  HostNeed need = getHostNeed(schedule, cluster);
  if (need.fits())
    return success();
  return emitError(schedule.module->getContext(), Code::memory)
         << "the plan needs " << exactSizeText(need.bytes)
         << " of the host's memory per device, but each device's part of it is "
         << exactSizeText(std::max<int64_t>(*need.part, 0))
         << "; use more hosts, shard the optimizer's state over more ranks, or leave --offload out";
}
