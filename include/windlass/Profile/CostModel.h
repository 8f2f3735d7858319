// How long operators and collectives take on a cluster: as measured, or by its public figures. No MLIR.
#ifndef WINDLASS_PROFILE_COSTMODEL_H
#define WINDLASS_PROFILE_COSTMODEL_H

#include "windlass/Cluster/Cluster.h"
#include "windlass/Profile/DeviceModel.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace windlass {

struct Profile;
class OperatorFits;
class CollectiveFits;

/// What a rank does when it runs an operator once, at its local shapes.
struct OperatorWork {
  double flops = 0;
  /// Read from and written to the device's memory.
  double bytes = 0;
  /// Whether the flops are products of 16-bit floats that add up in f32.
  bool isNarrow = false;
  /// Of work whose times follow one law: `makeFamily` of the kernel's name, or of `map` for element-wise functions.
  std::string family = {};
};

/// `matmul`, or `matmul.narrow` where the first operand holds floats narrower than f32.
std::string makeFamily(std::string kernel, bool isNarrow);
/// Of products of f32 that are rounded to TF32.
constexpr char kTf32Products[] = "matmul.tf32";

/// A collective among ranks of one mesh.
struct CollectiveWork {
  int64_t members = 1;
  /// The fewest consecutive devices, beginning at a multiple of their number, that hold all members of a group.
  int64_t span = 1;
  /// Steps that follow one another, each with one message: n-1 of a ring, 2(n-1) of a ring's all-reduce.
  int64_t messages = 0;
  /// That a rank sends in all of them.
  double sentBytes = 0;
  /// As of `sched.launch_collective`, and the bytes of a rank's larger buffer.
  std::string kind;
  double payloadBytes = 0;

  /// Messages and sent bytes of a ring; of a permute, of its one message.
  static CollectiveWork ofRing(std::string kind, int64_t members, double payloadBytes);
};

enum class CostSource { Measured, Fitted, Analytic };
/// "measured", "fitted", "analytic".
const char *getName(CostSource source);

struct Cost {
  int64_t picoseconds = 0;
  CostSource source = CostSource::Analytic;
  /// By which share of itself it may be off: the spread of a measured time, or how badly a fit says what was measured.
  /// Nothing for what was compared with no measurement.
  std::optional<double> errorShare = std::nullopt;
};

/// Whole, so that times add up alike on every machine.
int64_t toPicoseconds(double seconds);

/// A profile's entries where there are any; what they say about work of the same family; and for all else the analytic
/// model, a roofline for operators, latency plus bandwidth for messages.
class CostModel {
public:
  /// The profile, which may be null, is one of the cluster's devices and outlives the model. `precision` is the
  /// program's, whose 16-bit floats are bf16 unless it is f16.
  explicit CostModel(const Cluster &cluster, const Profile *profile = nullptr, const std::string &precision = "f32");
  ~CostModel();

  /// Of a command of L5, by its key (`CommandKeys.h`).
  Cost getCost(const std::string &key, const OperatorWork &work) const;
  Cost getCost(const OperatorWork &work) const;
  Cost getCost(const CollectiveWork &work) const;
  /// Of a copy of so many bytes between the memory of a device and pinned memory of its host: latency and bytes over
  /// the link's rate; where both are one memory, of a copy in it. None where the cluster does not say how fast the link
  /// is.
  std::optional<Cost> getCopyCost(double bytes) const;
  /// Of a command of L5 that the host runs on its own memory. None where the cluster does not say how fast hosts
  /// compute, as that of GPUs does not: ranks on CPUs are their hosts.
  std::optional<Cost> getHostCost(const std::string &key, const OperatorWork &work) const;
  int64_t getPicoseconds(const OperatorWork &work) const { return getCost(work).picoseconds; }
  int64_t getPicoseconds(const CollectiveWork &work) const { return getCost(work).picoseconds; }

  /// The larger of flops over the device's rate and bytes over its memory's, and a launch, as the device's model says.
  /// (Williams, Waterman, Patterson: Roofline, 2009.)
  double getAnalyticSeconds(const OperatorWork &work) const;
  /// messages latency + bytes / bandwidth, by the slowest tier that a group of such a span crosses (Hockney, 1994).
  double getAnalyticSeconds(const CollectiveWork &work) const;

  /// Whether collectives run beside operators: CPU ranks share their cores with them.
  bool overlapsCollectives() const { return overlaps; }

  /// That the host takes to issue a command of the update, or of a micro-batch.
  int64_t getIssuePicoseconds(bool isUpdate) const {
    return toPicoseconds(isUpdate ? device.updateIssueSeconds : device.issueSeconds);
  }

  /// What the cluster does not say and was assumed instead, a line each.
  const std::vector<std::string> &getAssumptions() const { return assumptions; }

private:
  struct Tier {
    int64_t devices;
    double latencySeconds, bytesPerSecond;
  };
  bool overlaps = false, sharesHostMemory = false;
  /// Of the slowest link between a device and its host; 0: not known of all of them.
  double hostLinkLatencySeconds = 0, hostLinkBytesPerSecond = 0;
  double flopsPerSecond = 0, narrowFlopsPerSecond = 0, tf32FlopsPerSecond = 0, memoryBytesPerSecond = 0;
  DeviceModel device;
  CostSource deviceSource = CostSource::Analytic;
  std::vector<Tier> tiers;
  std::vector<std::string> assumptions;
  const Profile *profile;
  std::unique_ptr<OperatorFits> operatorFits;
  std::unique_ptr<CollectiveFits> collectiveFits;
};

} // namespace windlass

#endif
