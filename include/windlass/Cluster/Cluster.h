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

/// A link. A figure that nobody has stated is absent.
struct Link {
  std::optional<double> latencySeconds;
  /// The rate for one device, in one direction.
  std::optional<int64_t> bytesPerSecond;
};

struct DeviceType {
  /// The back end that its programs are emitted for: "cpu" or "cuda".
  std::string backend;
  /// The memory of the device; absent for "cpu", whose devices share their host's memory. A "cpu" with memory of its
  /// own is an emulated device: its programs copy between both at the rates of the cluster.
  std::optional<int64_t> memoryBytes;
  std::optional<int64_t> memoryBytesPerSecond;
  /// The peak rates of dense products by data type; a type that the device lacks, or whose rate is unknown, is left
  /// out.
  std::map<std::string, int64_t> peakFlopsPerSecond;
  /// The shares of the peak that large dense products and large attentions reach in training steps; absent where nobody
  /// has stated them.
  std::optional<double> productEfficiency = std::nullopt, attentionEfficiency = std::nullopt;
};

/// Equal hosts, one after another.
struct HostGroup {
  int64_t count = 1;
  /// The number of devices of each host.
  int64_t devices = 1;
  std::string deviceType;
  std::optional<int64_t> memoryBytes;
  /// The rates of the host's memory and of its processors in f32, of which each device has an equal part. Absent for
  /// "cpu", whose devices are the host.
  std::optional<int64_t> memoryBytesPerSecond, flopsPerSecond;
  /// The link between a device and the host's memory.
  Link deviceLink;
  std::optional<int64_t> diskBytes, diskBytesPerSecond;
};

/// A link that joins each run of `devices` consecutive devices, beginning with the first.
struct LinkTier {
  std::string name;
  int64_t devices = 1;
  Link link;
  /// The network ports of each host, for a tier that joins several hosts; absent where each device has its own.
  std::optional<int64_t> nics = std::nullopt;
  /// The shares of the rate that large collectives reach: those of groups that fill a run of the tier, and those of
  /// smaller groups (absent: the same).
  std::optional<double> efficiency = std::nullopt, partialEfficiency = std::nullopt;
  /// The share of the rate at which a ring would have to run to be as fast as an all-reduce that the switches compute.
  /// It may exceed 1, because switches move fewer bytes than a ring. Absent where switches do not reduce.
  std::optional<double> inSwitchEfficiency = std::nullopt;
};

/// The machines and the links between them. Devices are numbered host by host, in the order of `hosts`.
struct Cluster {
  /// The version that is written, and the first that is still read.
  static constexpr int64_t kVersion = 2, kFirstVersion = 1;
  static constexpr int64_t kMaxDevices = 65536;

  std::map<std::string, DeviceType> deviceTypes;
  /// The hosts, whose devices are all of one back end.
  std::vector<HostGroup> hosts;
  /// The tiers, fastest first: each joins several runs of the one before, and the last joins all devices. Empty for a
  /// single device.
  std::vector<LinkTier> linkTiers;
  /// The device of each rank; empty where it is the rank's own number.
  std::vector<int64_t> deviceOrder;
  /// The bytes that a rank takes of its device's memory besides its arenas, where the user gives them instead of the
  /// back end. Not part of a cluster's file; a plan has them in a row of their own.
  std::optional<int64_t> reserveBytes;
  /// The sources of figures by the path of their keys, such as "hosts[0].memory_bytes". Not part of a plan.
  std::map<std::string, std::string> sources;

  int64_t getDevices() const;
  const std::string &getBackend() const;
  /// Whether devices are processors that emulate memory of their own.
  bool isEmulated() const;
  /// Returns `reserveBytes`, or 0 for emulated devices, which hold nothing but arenas; none where the back end says it.
  std::optional<int64_t> getGivenReserve() const;
  /// Returns the least bytes that a device of any host has: a GPU's own memory; for a CPU rank, its part of the host's.
  int64_t getDeviceMemoryBytes() const;
  /// Returns a text such as "4 hosts of 8 x a100-40g".
  std::string describe() const;
};

/// Returns the bytes of memory of the host that this process runs on; 0 where they cannot be found out.
int64_t getHostMemoryBytes();

/// Returns the cluster that the value of `--cluster` names: a preset with its devices, or a file. Fails with one line
/// that says what is wrong.
llvm::Expected<Cluster> findCluster(llvm::StringRef text, int64_t hostMemoryBytes = getHostMemoryBytes());

/// Makes the cluster of NAME:DEVICES or NAME:HOSTSxDEVICES; `cpu:N` is N ranks that share this host's memory, and
/// `emulated:N,KEY=VALUE..` N of them with memory of their own.
llvm::Expected<Cluster> makePreset(llvm::StringRef text, int64_t hostMemoryBytes = getHostMemoryBytes());
/// Returns the names of all presets.
std::vector<std::string> getPresetNames();

/// Writes the cluster in full as files and plan.json hold it, without its sources, and reads it. `path` names the place
/// in messages; it is empty for a document.
llvm::json::Object toJson(const Cluster &cluster);
llvm::Expected<Cluster> clusterFromJson(const llvm::json::Value &value, llvm::StringRef path);

/// Returns the first thing in which two clusters differ, such as "hosts[0].count is 2, not 4"; empty where they are
/// equal.
std::string findDifference(const Cluster &cluster, const Cluster &other);

} // namespace windlass

#endif
