#include "HostMemory.h"

#include "windlass/Dialect/Sched/IR/Place.h"
#include "windlass/Dialect/Sched/IR/Programs.h"
#include "windlass/Support/Words.h"

using namespace mlir;
using namespace windlass;

HostNeed windlass::getHostNeed(Schedule &schedule, const Cluster &cluster) {
  HostNeed need;
  for (sched::ProgramOp program : sched::getPrograms(*schedule.module))
    for (auto [kind, memory] : {std::pair(plan::MemoryKind::host, &need.memory), {plan::MemoryKind::disk, &need.disk}})
      if (sched::ArenaOp arena = sched::getArena(program, kind))
        memory->bytes = std::max<int64_t>(memory->bytes, arena.getBytes());
  for (const HostGroup &group : cluster.hosts) {
    auto limit = [&](SharedMemory &memory, std::optional<int64_t> bytes, int64_t taken) {
      if (!bytes)
        return;
      int64_t part = *bytes / group.devices - taken;
      memory.part = std::min(memory.part.value_or(part), part);
    };
    bool isShared = !cluster.deviceTypes.at(group.deviceType).memoryBytes;
    limit(need.memory, group.memoryBytes, isShared ? schedule.bytes : 0);
    limit(need.disk, group.diskBytes, 0);
  }
  return need;
}

LogicalResult windlass::checkHostMemory(Schedule &schedule, const Cluster &cluster) {
  HostNeed need = getHostNeed(schedule, cluster);
  auto check = [&](const SharedMemory &memory, StringRef what, StringRef remedy) -> LogicalResult {
    if (memory.fits())
      return success();
    return emitError(schedule.module->getContext(), Code::memory)
           << "the plan needs " << exactSizeText(memory.bytes) << " of the host's " << what
           << " per device, but each device's part of it is " << exactSizeText(std::max<int64_t>(*memory.part, 0))
           << "; use more hosts, shard the optimizer's state over more ranks, " << remedy;
  };
  if (failed(check(need.memory, "memory",
                   need.disk.bytes > 0 ? "or leave --offload out" : "leave --offload out, or take --offload disk")))
    return failure();
  return check(need.disk, "disk", "or keep it in the host's memory with --offload weights");
}
