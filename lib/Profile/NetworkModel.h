// How long collectives take on the links of a cluster.
#ifndef WINDLASS_LIB_PROFILE_NETWORKMODEL_H
#define WINDLASS_LIB_PROFILE_NETWORKMODEL_H

#include "windlass/Cluster/Cluster.h"
#include "windlass/Profile/CollectiveWork.h"

#include "llvm/ADT/SmallVector.h"

#include <cstdint>
#include <string>
#include <vector>

namespace windlass {

/// Predicts collectives from the tiers of links. On GPUs the time is the least over the ways in which NCCL may go about
/// it: a ring, a tree over hosts, reduction in the switch, and a way for small payloads; an exchange has one way. CPU
/// ranks have rings, whose messages are copies by the processor. docs/cluster.md has the formulas and what they were
/// fitted to.
class NetworkModel {
public:
  explicit NetworkModel(const Cluster &cluster);

  /// Returns the shape of a group of two devices that are joined by the same tier as `one` and `other`.
  GroupShape getPair(int64_t one, int64_t other) const;

  /// Returns the seconds of a collective; 0 for a group of one, and where the cluster has no tiers.
  double getSeconds(const CollectiveWork &work) const { return findWay(work).seconds; }
  /// Returns what a collective takes of each tier; nothing for CPU ranks, whose messages are copies by the processor.
  std::vector<LinkUse> getUses(const CollectiveWork &work) const;
  int64_t countTiers() const { return static_cast<int64_t>(tiers.size()); }

  /// Returns what was assumed where the cluster states nothing, a line each.
  const std::vector<std::string> &getAssumptions() const { return assumptions; }

private:
  struct Tier {
    int64_t devices;
    double latencySeconds, bytesPerSecond;
    /// The ports that a run of the tier below has.
    int64_t ports;
    double efficiency, partialEfficiency;
    /// 0 where switches do not reduce.
    double inSwitchEfficiency;
    /// Whether the tier joins several hosts.
    bool isNetwork;
  };
  /// How the members of a group lie on a tier.
  struct Level {
    const Tier *tier;
    /// The members in a run of the tier below, and in one of this tier.
    int64_t membersBelow, members;
    /// The rate at which the members in a run of the tier below together send to other runs.
    double bytesPerSecond;
    bool isFull() const { return members == tier->devices; }
    bool isCrossed() const { return members > membersBelow; }
    /// The runs of the tier below that a run of this tier joins.
    int64_t getRuns() const { return (members + membersBelow - 1) / membersBelow; }
  };
  using Levels = llvm::SmallVector<Level, 4>;
  /// A way to go about a collective: how long it takes, and for how long its transfers would keep the links of each
  /// level busy at the rate of large payloads.
  struct Way {
    double seconds = 0;
    llvm::SmallVector<double, 4> busySeconds;
    /// Adds a transfer over the links of a level, of whose rate it uses `share`; returns `transferSeconds`.
    double addTransfer(size_t level, double transferSeconds, double share = 1);
  };

  Levels getLevels(const CollectiveWork &work) const;
  double getPlainRingSeconds(const CollectiveWork &work) const;
  static double getStepsBetweenRuns(int64_t members, const Level &level);
  static void addTreeOverRuns(double payloadBytes, const Levels &levels, size_t number, Way &way, double &latency,
                              double &transfer);
  static Way getRing(const CollectiveWork &work, const Levels &levels);
  static Way getSmall(const CollectiveWork &work, const Levels &levels);
  static Way getTree(const CollectiveWork &work, const Levels &levels);
  static Way getInSwitch(const CollectiveWork &work, const Levels &levels);
  static Way getPermute(const CollectiveWork &work, const Levels &levels);
  static Way getExchange(const CollectiveWork &work, const Levels &levels);
  Way findWay(const CollectiveWork &work) const;

  bool hasPlainRings;
  std::vector<Tier> tiers;
  std::vector<std::string> assumptions;
};

} // namespace windlass

#endif
