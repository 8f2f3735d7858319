// The machines that a program is planned for. No MLIR.
#ifndef WINDLASS_CLUSTER_CLUSTER_H
#define WINDLASS_CLUSTER_CLUSTER_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/JSON.h"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace windlass {

/// A way that bytes take. What nobody has said is absent.
struct Link {
  std::optional<double> latencySeconds;
  /// Of one device, in one direction.
  std::optional<int64_t> bytesPerSecond;
};

struct DeviceType {
  /// What its programs are emitted for: "cpu" or "cuda".
  std::string backend;
  /// Absent for "cpu": its devices share their host's memory.
  std::optional<int64_t> memoryBytes;
  std::optional<int64_t> memoryBytesPerSecond;
  /// Of dense products, by data type; a type that the device lacks, or of which nothing is known, is left out.
  std::map<std::string, int64_t> peakFlopsPerSecond;
};

/// Equal hosts, one after another.
struct HostGroup {
  int64_t count = 1;
  /// Of each host.
  int64_t devices = 1;
  std::string deviceType;
  std::optional<int64_t> memoryBytes;
  /// Between a device and the host's memory.
  Link deviceLink;
  std::optional<int64_t> diskBytes, diskBytesPerSecond;
};

/// What joins each run of `devices` consecutive devices, beginning with the first.
struct LinkTier {
  std::string name;
  int64_t devices = 1;
  Link link;
};

/// Devices are numbered host by host, in the order of `hosts`.
struct Cluster {
  static constexpr int64_t kVersion = 1;
  static constexpr int64_t kMaxDevices = 65536;

  std::map<std::string, DeviceType> deviceTypes;
  /// All of one back end.
  std::vector<HostGroup> hosts;
  /// Fastest first: each joins several of the one before, the last all devices. None for a single device.
  std::vector<LinkTier> linkTiers;
  /// The device of each rank; empty where that is its own number.
  std::vector<int64_t> deviceOrder;
  /// Where figures come from, by the path of their keys, such as "hosts[0].memory_bytes". No part of a plan.
  std::map<std::string, std::string> sources;

  int64_t getDevices() const;
  const std::string &getBackend() const;
  /// Bytes that a device of any host has: a GPU's own memory, for CPU ranks their part of the host's.
  int64_t getDeviceMemoryBytes() const;
  /// "4 hosts of 8 x a100-40g".
  std::string describe() const;
};

/// Bytes of memory of the host that this process runs on; 0 where it cannot be told.
int64_t getHostMemoryBytes();

/// The cluster that `--cluster` names: a preset with its devices, or a file. Fails with one line that says what is
/// wrong.
llvm::Expected<Cluster> findCluster(llvm::StringRef text, int64_t hostMemoryBytes = getHostMemoryBytes());

/// NAME:DEVICES or NAME:HOSTSxDEVICES; `cpu:N` is N ranks that share this host's memory.
llvm::Expected<Cluster> makePreset(llvm::StringRef text, int64_t hostMemoryBytes = getHostMemoryBytes());
/// The names of all presets.
std::vector<std::string> getPresetNames();

/// The cluster in full as files and plan.json hold it, without its sources, and back; `path` names the place in
/// messages, empty for a document.
llvm::json::Object toJson(const Cluster &cluster);
llvm::Expected<Cluster> clusterFromJson(const llvm::json::Value &value, llvm::StringRef path);

/// The first thing in which two clusters differ, such as "hosts[0].count is 2, not 4"; empty where there is none.
std::string findDifference(const Cluster &cluster, const Cluster &other);

} // namespace windlass

#endif
