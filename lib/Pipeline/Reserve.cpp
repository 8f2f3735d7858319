#include "Reserve.h"

#include "windlass/Dialect/Sched/Analysis/Scratch.h"
#include "windlass/Dialect/Sched/IR/SchedOps.h"
#include "windlass/Support/TensorBytes.h"

#include <thread>

using namespace mlir;
using namespace windlass;

static int64_t countHosts(const Cluster &cluster) {
  int64_t hosts = 0;
  for (const HostGroup &group : cluster.hosts)
    hosts += group.count;
  return hosts;
}

/// Returns the inputs of a rank's reserve that depend neither on the plan nor on the processor.
static rt::reserve_need describeRank(int64_t ranks, const Cluster &cluster) {
  rt::reserve_need need;
  need.ranks = ranks;
  need.has_processes = ranks > 1;
  need.is_one_host = countHosts(cluster) <= 1;
  return need;
}

/// Returns the reserve that the user gives, or else the one that the cluster's back end declares.
static rt::reserve declareNeed(const Cluster &cluster, const rt::reserve_need &need) {
  if (std::optional<int64_t> bytes = cluster.getGivenReserve()) {
    rt::reserve given;
    given.given = *bytes;
    return given;
  }
  return cluster.getBackend() == "cpu" ? rt::declare_reserve(need) : rt::declare_device_reserve(need);
}

int64_t windlass::getSearchedMemory(const PlanChoice &choice) {
  rt::reserve least = declareNeed(choice.cluster, describeRank(choice.cluster.getDevices(), choice.cluster));
  return choice.getMemoryLimit() - (least.total() - least.threads);
}

int64_t windlass::expectCommunication(const plan::StrategyChoice &mesh, const Cluster &cluster) {
  rt::reserve_need need = describeRank(cluster.getDevices(), cluster);
  int64_t without = declareNeed(cluster, need).communication;
  int64_t all = mesh.mesh.getRanks();
  for (plan::AxisAttr axis : mesh.mesh.getAxes())
    if (axis.getSize() > 1 && axis.getSize() < all)
      need.communicators.push_back({static_cast<int32_t>(axis.getSize()), false});
  need.communicators.push_back({static_cast<int32_t>(all), false});
  return declareNeed(cluster, need).communication - without;
}

rt::reserve windlass::declareReserve(sched::ProgramOp program, const Cluster &cluster, int64_t threads) {
  plan::MeshAttr mesh = program.getMesh();
  rt::reserve_need need = describeRank(cluster.getDevices(), cluster);
  int64_t most = 1;
  for (const HostGroup &group : cluster.hosts)
    most = std::max(most, group.devices);
  need.threads = threads ? threads : std::max<int64_t>(1, std::thread::hardware_concurrency() / most);
  for (auto communicator : program.getOps<sched::CommunicatorOp>()) {
    rt::reserve_need::communicator &its = need.communicators.emplace_back();
    for (Attribute axis : communicator.getAxes())
      its.members *= static_cast<int32_t>(mesh.sizeOf(cast<StringAttr>(axis).getValue()));
    its.exchanges = communicator.getExchanges();
  }
  need.scratch_bytes = sched::getScratchBytesPerThread(program);
  for (auto resource : program.getOps<sched::ResourceOp>())
    switch (resource.getKind()) {
    case sched::ResourceKind::input:
      need.input_bytes += getTensorBytes(resource.getGlobalTensorType());
      [[fallthrough]];
    case sched::ResourceKind::parameter:
    case sched::ResourceKind::state:
      ++need.tensors;
      break;
    default:
      break;
    }
  return declareNeed(cluster, need);
}
