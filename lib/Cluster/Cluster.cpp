#include "windlass/Cluster/Cluster.h"

#include "windlass/Support/Printable.h"
#include "windlass/Support/StrictJson.h"

#include <limits>
#include <unistd.h>

using namespace windlass;
using llvm::StringRef;
using llvm::Twine;

bool Cluster::operator==(const Cluster &other) const {
  return device == other.device && hosts == other.hosts && devicesPerHost == other.devicesPerHost &&
         memoryBytes == other.memoryBytes;
}

int64_t windlass::getHostMemoryBytes() {
  long pages = sysconf(_SC_PHYS_PAGES), size = sysconf(_SC_PAGE_SIZE);
  return pages > 0 && size > 0 ? static_cast<int64_t>(pages) * size : 0;
}

llvm::Expected<Cluster> windlass::parseCluster(StringRef text, int64_t hostMemoryBytes) {
  auto [device, count] = text.split(':');
  if (device != "cpu")
    return makeError("cluster " + printable(text) + " is not known: use cpu:N, N ranks on this machine");
  int64_t devices = 0;
  if (count.empty() || !llvm::all_of(count, llvm::isDigit) || count.getAsInteger(10, devices) || devices < 1 ||
      devices > Cluster::kMaxDevices)
    return makeError("cluster " + printable(text) + " names no number of ranks from 1 to " +
                     Twine(Cluster::kMaxDevices) + ": use cpu:N, for example cpu:2");
  Cluster cluster;
  cluster.devicesPerHost = devices;
  cluster.memoryBytes = hostMemoryBytes / devices;
  if (cluster.memoryBytes < 1)
    return makeError("cluster " + printable(text) + " leaves no memory per rank: the host has " +
                     Twine(hostMemoryBytes) + " bytes for " + Twine(devices) + " ranks; use fewer");
  return cluster;
}

llvm::json::Value windlass::toJson(const Cluster &cluster) {
  return llvm::json::Object{{"device", cluster.device},
                            {"hosts", cluster.hosts},
                            {"devices_per_host", cluster.devicesPerHost},
                            {"memory_bytes", cluster.memoryBytes}};
}

llvm::Expected<Cluster> windlass::clusterFromJson(const llvm::json::Value &value, const std::string &path) {
  ObjectReader reader(value, path);
  Cluster cluster;
  cluster.device = reader.getString("device");
  cluster.hosts = reader.getInteger("hosts", 1, Cluster::kMaxDevices);
  cluster.devicesPerHost = reader.getInteger("devices_per_host", 1, Cluster::kMaxDevices);
  cluster.memoryBytes = reader.getInteger("memory_bytes", 1, std::numeric_limits<int64_t>::max());
  if (!reader.failed() && cluster.device != "cpu")
    reader.fail("device", "is " + printable(cluster.device) + ", but only 'cpu' is available");
  if (!reader.failed() && cluster.getDevices() > Cluster::kMaxDevices)
    reader.fail("", "has " + Twine(cluster.getDevices()) + " devices, more than " + Twine(Cluster::kMaxDevices));
  if (llvm::Error error = reader.takeError())
    return std::move(error);
  return cluster;
}
