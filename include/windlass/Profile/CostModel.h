// How long operators and collectives take on a cluster, by its public figures. No MLIR.
#ifndef WINDLASS_PROFILE_COSTMODEL_H
#define WINDLASS_PROFILE_COSTMODEL_H

#include "windlass/Cluster/Cluster.h"

#include <cstdint>
#include <string>
#include <vector>

namespace windlass {

/// What a rank does when it runs an operator once, at its local shapes.
struct OperatorWork {
  double flops = 0;
  /// Read from and written to the device's memory.
  double bytes = 0;
  /// Whether the flops are products of bf16 that add up in f32.
  bool isNarrow = false;
};

/// A collective among ranks of one mesh.
struct CollectiveWork {
  int64_t members = 1;
  /// The fewest consecutive devices, beginning at a multiple of their number, that hold all members of a group.
  int64_t span = 1;
  /// Steps that follow one another, each with one message: n-1 of a ring, 2(n-1) of a ring's all-reduce.
  int64_t messages = 0;
  /// That a rank sends in all of them.
  double sentBytes = 0;
};

/// The analytic model: a roofline for operators, latency plus bandwidth for messages. Times are whole picoseconds,
/// so that they add up alike on every machine.
class CostModel {
public:
  explicit CostModel(const Cluster &cluster);

  /// The larger of flops over the device's rate and bytes over its memory's, and a launch. (Williams, Waterman,
  /// Patterson: Roofline, 2009.)
  int64_t getPicoseconds(const OperatorWork &work) const;
  /// messages latency + bytes / bandwidth, by the slowest tier that a group of such a span crosses (Hockney, 1994).
  int64_t getPicoseconds(const CollectiveWork &work) const;

  /// Whether collectives run beside operators: CPU ranks share their cores with them.
  bool overlapsCollectives() const { return overlaps; }

  /// What the cluster does not say and was assumed instead, a line each.
  const std::vector<std::string> &getAssumptions() const { return assumptions; }

private:
  struct Tier {
    int64_t devices;
    double latencySeconds, bytesPerSecond;
  };
  bool overlaps = false;
  double flopsPerSecond = 0, narrowFlopsPerSecond = 0, memoryBytesPerSecond = 0, launchSeconds = 0;
  std::vector<Tier> tiers;
  std::vector<std::string> assumptions;
};

} // namespace windlass

#endif
