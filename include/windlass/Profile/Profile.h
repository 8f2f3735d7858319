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

/// The result of one repeated measurement.
struct MeasuredTime {
  double medianSeconds = 0;
  /// The seconds between the quartiles.
  double spreadSeconds = 0;
  int64_t turns = 0;
  double getErrorShare() const { return medianSeconds > 0 ? spreadSeconds / medianSeconds : 0; }
};

struct CommandEntry {
  OperatorWork work;
  /// The times while all ranks of the host run the command, and while the other ranks sleep.
  MeasuredTime loaded, alone;
};

/// How a device's library computes a product fastest. The numbers of the algorithm are the library's own.
struct ProductChoice {
  std::vector<int32_t> algorithm;
  /// The seconds of one product with this algorithm, and with the one that the library itself puts first.
  double seconds = 0, firstSeconds = 0;
};

/// The seconds that a device's library took for a product with what follows it, and that two kernels took for the same.
struct EpilogueTimes {
  double seconds = 0, apartSeconds = 0;
};

/// The products of one device with one version of its library; programs for other devices or versions do without.
struct ProductChoices {
  std::string device, library;
  std::map<std::string, ProductChoice> choices;
  /// The times by the keys of the fused commands (`CommandKeys.h`).
  std::map<std::string, EpilogueTimes> epilogues;
};

/// The seconds that a device's library took for an attention, and that the own kernels took for the same.
struct AttentionTimes {
  double seconds = 0, ownSeconds = 0;
  int64_t workspaceBytes = 0;
};

/// The attentions of one device with one version of its library, by the keys of the commands (`CommandKeys.h`).
struct AttentionChoices {
  std::string device, library;
  std::map<std::string, AttentionTimes> choices;
};

struct Profile {
  static constexpr int64_t kVersion = 1;
  static constexpr size_t kMostEntries = 100000;
  static constexpr size_t kMostBytes = size_t(64) << 20;

  /// The name of the processor that the profile was taken on, and the cluster of its ranks. `threads` is the size of a
  /// rank's compute team.
  std::string machine;
  Cluster cluster;
  int64_t threads = 1;
  /// The commands by the texts of their keys (`CommandKeys.h`).
  std::map<std::string, CommandEntry> commands;
  /// The collectives by kind, number of members, and bytes of all that a member reduces, gathers or exchanges.
  std::map<std::tuple<std::string, int64_t, int64_t>, MeasuredTime> collectives;
  /// The device's model for commands of families that were not measured; nothing: the defaults.
  std::optional<DeviceModel> device;
  /// The machine's rates by name, per second: memory, copies between host and device, pinning, the host's optimizer,
  /// its disk. Only the optimizer's rate is used so far (`CostModel::getHostCost`).
  std::map<std::string, double> rates;
  std::optional<ProductChoices> products;
  std::optional<AttentionChoices> attention;
};

/// Writes profile.json with sorted keys, and reads it. Reading fails with one line that says what is wrong.
std::string writeProfile(const Profile &profile);
llvm::Expected<Profile> readProfile(llvm::StringRef text);

/// Returns why times of `profile` say nothing about `cluster`, or an empty text: the back end, the device type or, on
/// CPUs, the ranks of a host differ.
std::string findMismatch(const Profile &profile, const Cluster &cluster);

} // namespace windlass

#endif
