// The machines that a program is planned for. No MLIR.
#ifndef WINDLASS_CLUSTER_CLUSTER_H
#define WINDLASS_CLUSTER_CLUSTER_H

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/JSON.h"

#include <cstdint>
#include <string>

namespace windlass {

/// Equal devices on equal hosts. Ranks count devices host by host.
struct Cluster {
  static constexpr int64_t kMaxDevices = 65536;

  /// The kind of device, which names the back end: "cpu".
  std::string device = "cpu";
  int64_t hosts = 1;
  int64_t devicesPerHost = 1;
  /// Memory of one device, in bytes.
  int64_t memoryBytes = 0;

  int64_t getDevices() const { return hosts * devicesPerHost; }
  bool operator==(const Cluster &other) const;
};

/// Bytes of memory of the host that this process runs on; 0 where it cannot be told.
int64_t getHostMemoryBytes();

/// The cluster that `--cluster` names. `cpu:N`: N ranks that share this host's memory. Fails with one line that says
/// what is wrong.
llvm::Expected<Cluster> parseCluster(llvm::StringRef text, int64_t hostMemoryBytes = getHostMemoryBytes());

/// The cluster in full, as plan.json holds it, and back; `path` names the place in messages.
llvm::json::Value toJson(const Cluster &cluster);
llvm::Expected<Cluster> clusterFromJson(const llvm::json::Value &value, const std::string &path = "cluster");

} // namespace windlass

#endif
