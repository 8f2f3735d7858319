#include "NetworkModel.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>

using namespace windlass;

namespace {

/// The figures of links where the cluster states none. Those between CPU ranks were measured with one core for each
/// rank on a server of 2023 (`benchmarks/results/gemm.txt`); those between CPU hosts are of Ethernet at 10 Gb/s and a
/// message of MPI over TCP; those between devices are of PCIe 4 x16 and a message through it.
constexpr double kCpuLinkRate = 5e9, kCpuLinkLatency = 5e-6;
constexpr double kCpuNetworkRate = 1.25e9, kCpuNetworkLatency = 30e-6;
constexpr double kLinkRate = 25e9, kLinkLatency = 10e-6;
/// The shares of a data sheet's rate that large collectives reach: within hosts those of NVLink on A100 and H100, on
/// networks the 48 of 50 GB/s that InfiniBand and RoCE reach.
constexpr double kEfficiency = 0.8, kNetworkEfficiency = 0.96;

/// The constants of the model, fitted once to all open configurations of `benchmarks/clusters` whose devices have a
/// preset, and rounded; no row has one of its own. Latencies are multiples of a tier's, which is that of a ring's step
/// at full bandwidth: launch of a collective; a step of a ring; a level of a tree over hosts, with its way down; the
/// switch's two passes within a host.
constexpr double kLaunchSeconds = 8e-6;
constexpr double kRingStep = 0.75, kNetworkRingStep = 0.6, kTreeLevel = 2.6, kInSwitch = 6.4;
/// Small payloads: a step within a host and one between hosts, and the shares of the rates of large payloads.
constexpr double kSmallStep = 0.19, kSmallNetworkStep = 1.1, kSmallShare = 0.155, kSmallNetworkShare = 0.26;
/// Exchanges: latency of a step, another one for each further host, and the share of a network's rate.
constexpr double kExchangeStep = 1.65, kExchangeHost = 0.54, kExchangeShare = 0.65;
/// How much more a tree moves within hosts than a ring.
constexpr double kTreeTraffic = 1.35;
/// How much of the geometric mean of latency and transfer is not hidden. Data in chunks through a chain of hops takes
/// A + B + 2 sqrt(A B) with chunks of the best size (p = 1); several chains side by side hide a part of that.
constexpr double kPipelineShare = 0.45;

} // namespace

static double addPipelined(double latency, double transfer) {
  return latency + transfer + 2 * kPipelineShare * std::sqrt(latency * transfer);
}

NetworkModel::NetworkModel(const Cluster &cluster) : hasPlainRings(cluster.getBackend() == "cpu") {
  auto assume = [&](const char *key, const LinkTier &tier, double value) {
    char text[32];
    std::snprintf(text, sizeof(text), "%.3g", value);
    assumptions.push_back(std::string(key) + " of tier '" + tier.name + "' is not in the cluster: taken as " + text);
    return value;
  };
  int64_t hostDevices = cluster.hosts.empty() ? 1 : cluster.hosts.front().devices;
  for (const HostGroup &group : cluster.hosts)
    hostDevices = std::min(hostDevices, group.devices);
  int64_t below = 1;
  for (const LinkTier &tier : cluster.linkTiers) {
    Tier &own = tiers.emplace_back();
    own.devices = tier.devices;
    own.isNetwork = tier.devices > hostDevices;
    own.latencySeconds = tier.link.latencySeconds ? *tier.link.latencySeconds
                                                  : assume("latency_s", tier,
                                                           !hasPlainRings  ? kLinkLatency
                                                           : own.isNetwork ? kCpuNetworkLatency
                                                                           : kCpuLinkLatency);
    own.bytesPerSecond = tier.link.bytesPerSecond ? static_cast<double>(*tier.link.bytesPerSecond)
                                                  : assume("bandwidth_bytes_per_s", tier,
                                                           !hasPlainRings  ? kLinkRate
                                                           : own.isNetwork ? kCpuNetworkRate
                                                                           : kCpuLinkRate);
    own.ports = own.isNetwork && tier.nics ? std::clamp<int64_t>(*tier.nics * below / hostDevices, 1, below) : below;
    if (hasPlainRings)
      own.efficiency = 1;
    else
      own.efficiency = tier.efficiency ? *tier.efficiency
                                       : assume("efficiency", tier, own.isNetwork ? kNetworkEfficiency : kEfficiency);
    own.partialEfficiency = tier.partialEfficiency.value_or(own.efficiency);
    own.inSwitchEfficiency = tier.inSwitchEfficiency.value_or(0);
    below = tier.devices;
  }
}

NetworkModel::Levels NetworkModel::getLevels(const CollectiveWork &work) const {
  Levels levels;
  int64_t members = work.group.getMembers(), devicesBelow = 1, membersBelow = 1;
  for (const Tier &tier : tiers) {
    Level level = {&tier, membersBelow, work.group.getMembersWithin(tier.devices), 0};
    // Groups that run beside this one share the ports of the run below; a group that runs alone uses at most one port
    // for each of its members there.
    auto groups = static_cast<double>(devicesBelow) / static_cast<double>(membersBelow);
    if (work.concurrentGroups > 0)
      groups = std::clamp(static_cast<double>(work.concurrentGroups), 1.0, std::max(groups, 1.0));
    double alone = static_cast<double>(std::min(level.membersBelow, tier.ports)) / static_cast<double>(tier.ports);
    level.bytesPerSecond = tier.bytesPerSecond * static_cast<double>(devicesBelow) * std::min(alone, 1 / groups) *
                           (level.isFull() ? tier.efficiency : tier.partialEfficiency);
    levels.push_back(level);
    devicesBelow = tier.devices;
    membersBelow = level.members;
    if (level.members >= members)
      break;
  }
  return levels;
}

/// Returns the steps of a ring of `members` from a run of the tier below to another one of the same run of the tier.
double NetworkModel::getStepsBetweenRuns(int64_t members, const Level &level) {
  return static_cast<double>(members) / static_cast<double>(level.membersBelow) -
         static_cast<double>(members) / static_cast<double>(level.members);
}

double NetworkModel::Way::addTransfer(size_t level, double transferSeconds, double share) {
  busySeconds.resize(std::max(busySeconds.size(), level + 1));
  busySeconds[level] = transferSeconds * share;
  return transferSeconds;
}

/// A ring passes each tier with (runs - 1) of its steps and is as fast as the slowest.
NetworkModel::Way NetworkModel::getRing(const CollectiveWork &work, const Levels &levels) {
  Way way;
  double latency = kLaunchSeconds, transfer = 0;
  auto members = work.group.getMembers();
  for (auto [number, level] : llvm::enumerate(levels)) {
    if (!level.isCrossed())
      continue;
    double steps = getStepsBetweenRuns(members, level) * (work.kind == "all_reduce" ? 2 : 1);
    latency += steps * level.tier->latencySeconds * (level.tier->isNetwork ? kNetworkRingStep : kRingStep);
    transfer = std::max(transfer, way.addTransfer(number, work.getRingBytes() / level.bytesPerSecond));
  }
  way.seconds = addPipelined(latency, transfer);
  return way;
}

/// Small payloads go at once, with short latency and at a part of the rate; an all-reduce goes over hosts as a tree.
NetworkModel::Way NetworkModel::getSmall(const CollectiveWork &work, const Levels &levels) {
  Way way;
  double latency = kLaunchSeconds, transfer = 0;
  auto members = work.group.getMembers();
  bool isReduced = work.kind == "all_reduce";
  for (auto [number, level] : llvm::enumerate(levels)) {
    if (!level.isCrossed())
      continue;
    int64_t runs = level.getRuns();
    double steps, bytes;
    if (level.tier->isNetwork) {
      steps = isReduced ? 2.0 * llvm::Log2_64_Ceil(runs) : getStepsBetweenRuns(members, level);
      bytes = work.payloadBytes * static_cast<double>(runs - 1) / static_cast<double>(runs) * (isReduced ? 2 : 1);
    } else {
      steps = isReduced ? 2 * getStepsBetweenRuns(level.members, level) : getStepsBetweenRuns(members, level);
      bytes = work.getRingBytes();
    }
    latency += steps * level.tier->latencySeconds * (level.tier->isNetwork ? kSmallNetworkStep : kSmallStep);
    double share = level.tier->isNetwork ? kSmallNetworkShare : kSmallShare;
    transfer = std::max(transfer, way.addTransfer(number, bytes / (level.bytesPerSecond * share), share));
  }
  way.seconds = latency + transfer;
  return way;
}

/// Returns the bytes that a run sends, and those that it receives, in an all-reduce over a tree of runs: of two, each
/// sends its part once; of more, two trees in which each run is a leaf of one and between others in the other one
/// (Sanders, Speck, Träff: Two-tree algorithms for full bandwidth broadcast, reduction and scan, 2009), unless switches
/// reduce.
static double getTreeBytes(double payloadBytes, int64_t runs, bool isReducedInSwitch) {
  return runs == 2 || isReducedInSwitch ? payloadBytes : 2 * payloadBytes;
}

/// Adds what a tree over the runs of a level takes.
void NetworkModel::addTreeOverRuns(double payloadBytes, const Levels &levels, size_t number, Way &way, double &latency,
                                   double &transfer) {
  const Level &level = levels[number];
  const Tier &tier = *level.tier;
  bool isReducedInSwitch = tier.inSwitchEfficiency > 0;
  double rate = level.bytesPerSecond;
  if (isReducedInSwitch)
    rate *= tier.inSwitchEfficiency / tier.efficiency;
  latency += 2.0 * llvm::Log2_64_Ceil(level.getRuns()) * tier.latencySeconds * kTreeLevel;
  double bytes = getTreeBytes(payloadBytes, level.getRuns(), isReducedInSwitch);
  transfer = std::max(transfer, way.addTransfer(number, bytes / rate));
}

/// A chain within a host, and a tree over hosts.
NetworkModel::Way NetworkModel::getTree(const CollectiveWork &work, const Levels &levels) {
  Way way;
  double latency = kLaunchSeconds, transfer = 0;
  for (auto [number, level] : llvm::enumerate(levels)) {
    if (!level.isCrossed())
      continue;
    if (level.tier->isNetwork) {
      addTreeOverRuns(work.payloadBytes, levels, number, way, latency, transfer);
      continue;
    }
    auto runs = static_cast<double>(level.getRuns());
    latency += 2 * (runs - 1) * level.tier->latencySeconds * kRingStep;
    double seconds = 2 * work.payloadBytes * (runs - 1) / runs / level.bytesPerSecond * kTreeTraffic;
    transfer = std::max(transfer, way.addTransfer(number, seconds));
  }
  way.seconds = addPipelined(latency, transfer);
  return way;
}

/// The switches of full hosts add what their devices hold, and a tree joins the hosts. `inSwitchEfficiency` is a share
/// of a ring's rate, so the bytes within a host are those of a ring.
NetworkModel::Way NetworkModel::getInSwitch(const CollectiveWork &work, const Levels &levels) {
  Way way;
  double latency = kLaunchSeconds, transfer = 0;
  for (auto [number, level] : llvm::enumerate(levels)) {
    if (!level.isCrossed())
      continue;
    const Tier &tier = *level.tier;
    if (tier.isNetwork) {
      addTreeOverRuns(work.payloadBytes, levels, number, way, latency, transfer);
      continue;
    }
    if (!level.isFull() || tier.inSwitchEfficiency <= 0 || level.members <= 2)
      return {std::numeric_limits<double>::max(), {}};
    latency += tier.latencySeconds * kInSwitch;
    transfer = way.addTransfer(number, work.getRingBytes() / (tier.bytesPerSecond * tier.inSwitchEfficiency));
  }
  way.seconds = addPipelined(latency, transfer);
  return way;
}

/// Each rank sends its payload to one other.
NetworkModel::Way NetworkModel::getPermute(const CollectiveWork &work, const Levels &levels) {
  Way way;
  double latency = 0, transfer = 0;
  for (auto [number, level] : llvm::enumerate(levels)) {
    if (!level.isCrossed())
      continue;
    const Tier &tier = *level.tier;
    latency = std::max(latency, (tier.isNetwork ? kExchangeStep : 2 * kSmallStep) * tier.latencySeconds);
    double seconds = work.payloadBytes / (level.bytesPerSecond / static_cast<double>(level.membersBelow));
    transfer = std::max(transfer, way.addTransfer(number, seconds));
  }
  way.seconds = kLaunchSeconds + latency + transfer;
  return way;
}

/// Each rank sends to each other one. What leaves a host uses its ports, which all members share.
NetworkModel::Way NetworkModel::getExchange(const CollectiveWork &work, const Levels &levels) {
  Way way;
  double latency = 0, transfer = 0;
  auto members = static_cast<double>(work.group.getMembers());
  for (auto [number, level] : llvm::enumerate(levels)) {
    if (!level.isCrossed())
      continue;
    const Tier &tier = *level.tier;
    double rate = level.bytesPerSecond / static_cast<double>(level.membersBelow), share = 1;
    // The members that a rank reaches through this tier: on a network, all beyond the run below; within a host, only
    // those in the same run of this tier, since what goes further leaves through the ports.
    double reached;
    if (tier.isNetwork) {
      rate *= share = kExchangeShare;
      latency = std::max(latency, (kExchangeStep + static_cast<double>(level.getRuns() - 1) * kExchangeHost) *
                                      tier.latencySeconds);
      reached = members - static_cast<double>(level.membersBelow);
    } else {
      latency = std::max(latency, 2 * kSmallStep * tier.latencySeconds);
      reached = static_cast<double>(level.members - level.membersBelow);
    }
    transfer = std::max(transfer, way.addTransfer(number, work.payloadBytes * (reached / members) / rate, share));
  }
  way.seconds = kLaunchSeconds + latency + transfer;
  return way;
}

GroupShape NetworkModel::getPair(int64_t one, int64_t other) const {
  GroupShape pair;
  pair.axes.push_back({1, 2});
  for (const Tier &tier : tiers) {
    if (one / tier.devices == other / tier.devices)
      break;
    // The two are in different runs of this tier.
    pair.axes.front().stride = tier.devices;
  }
  return pair;
}

double NetworkModel::getPlainRingSeconds(const CollectiveWork &work) const {
  // A group crosses every tier up to the one that joins its span; the slowest of these decides. (Hockney, 1994.)
  double latency = 0, rate = std::numeric_limits<double>::max();
  for (const Tier &tier : tiers) {
    latency = std::max(latency, tier.latencySeconds);
    rate = std::min(rate, tier.bytesPerSecond);
    if (tier.devices >= work.group.getSpan())
      break;
  }
  return static_cast<double>(work.getRingSteps()) * latency + work.getRingBytes() / rate;
}

NetworkModel::Way NetworkModel::findWay(const CollectiveWork &work) const {
  if (work.group.getMembers() <= 1 || tiers.empty())
    return {};
  if (hasPlainRings)
    return {getPlainRingSeconds(work), {}};
  Levels levels = getLevels(work);
  if (work.kind == "permute")
    return getPermute(work, levels);
  if (work.kind == "all_to_all")
    return getExchange(work, levels);
  Way fastest = getRing(work, levels);
  auto consider = [&](Way other) {
    if (other.seconds < fastest.seconds)
      fastest = std::move(other);
  };
  consider(getSmall(work, levels));
  if (work.kind != "all_reduce")
    return fastest;
  if (levels.back().tier->isNetwork)
    consider(getTree(work, levels));
  consider(getInSwitch(work, levels));
  return fastest;
}

std::vector<LinkUse> NetworkModel::getUses(const CollectiveWork &work) const {
  Way way = findWay(work);
  std::vector<LinkUse> uses;
  for (auto [tier, busy] : llvm::enumerate(way.busySeconds))
    if (busy > 0)
      uses.push_back({static_cast<int64_t>(tier), std::min(1.0, busy / way.seconds)});
  return uses;
}
