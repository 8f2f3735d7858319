// What `windlass profile` measured: how long commands and collectives take on a machine. No MLIR.
#ifndef WINDLASS_PROFILE_PROFILE_H
#define WINDLASS_PROFILE_PROFILE_H

#include "windlass/Cluster/Cluster.h"
#include "windlass/Profile/CostModel.h"
#include "windlass/Profile/DeviceModel.h"

#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

namespace windlass {

/// Of one measurement, repeated.
struct MeasuredTime {
  double medianSeconds = 0;
  /// Between the quartiles.
  double spreadSeconds = 0;
  int64_t turns = 0;
  double getErrorShare() const { return medianSeconds > 0 ? spreadSeconds / medianSeconds : 0; }
};

struct CommandEntry {
  OperatorWork work;
  /// While all ranks of the host run it, and while the others sleep.
  MeasuredTime loaded, alone;
};

/// How a device's library computes a product fastest. The names and numbers are its own.
struct ProductChoice {
  std::vector<int32_t> algorithm;
  /// Of one product so, and as the library would have computed it.
  double seconds = 0, firstSeconds = 0;
};

/// How long a device's library took for a product with what follows it, and two kernels for the same.
struct EpilogueTimes {
  double seconds = 0, apartSeconds = 0;
};

/// Of one device with one version of its library; programs for others do without.
struct ProductChoices {
  std::string device, library;
  std::map<std::string, ProductChoice> choices;
  /// By the keys of the fused commands (`CommandKeys.h`).
  std::map<std::string, EpilogueTimes> epilogues;
};

/// How long a device's library took for an attention, and the own kernels for the same.
struct AttentionTimes {
  double seconds = 0, ownSeconds = 0;
  int64_t workspaceBytes = 0;
};

/// Of one device with one version of the library, by the keys of the commands (`CommandKeys.h`).
struct AttentionChoices {
  std::string device, library;
  std::map<std::string, AttentionTimes> choices;
};

struct Profile {
  static constexpr int64_t kVersion = 1;
  static constexpr size_t kMostEntries = 100000;
  static constexpr size_t kMostBytes = size_t(64) << 20;

  /// That it was taken on: the processor's name, and what its ranks were. `threads` is a rank's compute team.
  std::string machine;
  Cluster cluster;
  int64_t threads = 1;
  /// By the texts of their keys (`CommandKeys.h`).
  std::map<std::string, CommandEntry> commands;
  /// By kind, members and bytes of all that is reduced, gathered or exchanged by a member.
  std::map<std::tuple<std::string, int64_t, int64_t>, MeasuredTime> collectives;
  /// For commands of families that were not measured, in place of the defaults.
  std::optional<DeviceModel> device;
  /// Of the machine, by name and per second: of memory, of copies between host and device, of pinning, of the host's
  /// optimizer, of its disk. No plan asks for them yet.
  std::map<std::string, double> rates;
  std::optional<ProductChoices> products;
  std::optional<AttentionChoices> attention;
};

/// profile.json, sorted, and back. Fails with one line that says what is wrong.
std::string writeProfile(const Profile &profile);
llvm::Expected<Profile> readProfile(llvm::StringRef text);

/// Why times of the profile say nothing about a cluster: the facts that differ; empty where they do.
std::string findMismatch(const Profile &profile, const Cluster &cluster);

} // namespace windlass

#endif
