#include "windlass/Profile/CostModel.h"

#include "gtest/gtest.h"

using namespace windlass;

namespace {

constexpr double kGigabyte = 1e9;

/// Hosts of eight devices: 100 GB/s within a host and 10 GB/s for each device between hosts.
Cluster makeCluster(int64_t hosts, std::string backend = "cuda") {
  Cluster cluster;
  DeviceType &type = cluster.deviceTypes["d"];
  type.backend = std::move(backend);
  type.memoryBytesPerSecond = 100'000'000'000;
  type.peakFlopsPerSecond["f32"] = 1'000'000'000'000;
  HostGroup &group = cluster.hosts.emplace_back();
  group.count = hosts;
  group.devices = 8;
  group.deviceType = "d";
  group.memoryBytes = int64_t(1) << 40;
  cluster.linkTiers.push_back({"link", 8, {1e-6, 100'000'000'000}, std::nullopt, 0.8});
  if (hosts > 1)
    cluster.linkTiers.push_back({"network", hosts * 8, {10e-6, 10'000'000'000}, std::nullopt, 0.9});
  return cluster;
}

CollectiveWork makeWork(const char *kind, int64_t perHost, int64_t hosts, double bytes, int64_t groups = 0) {
  CollectiveWork work = {kind, {}, bytes, groups};
  if (perHost > 1)
    work.group.axes.push_back({1, perHost});
  if (hosts > 1)
    work.group.axes.push_back({8, hosts});
  return work;
}

double getSeconds(const Cluster &cluster, const CollectiveWork &work) {
  return CostModel(cluster).getAnalyticSeconds(work);
}

TEST(NetworkModelTest, RingsOfProcessorsCostTheirMessagesAndBytesOnTheSlowestTier) {
  Cluster cluster = makeCluster(2, "cpu");
  EXPECT_NEAR(getSeconds(cluster, makeWork("all_reduce", 4, 1, 4e8)), 6 * 1e-6 + 6e8 / 100e9, 1e-12);
  EXPECT_NEAR(getSeconds(cluster, makeWork("all_gather", 1, 2, 4e8)), 10e-6 + 2e8 / 10e9, 1e-12);
  EXPECT_NEAR(getSeconds(cluster, makeWork("permute", 1, 2, 4e8)), 10e-6 + 4e8 / 10e9, 1e-12);
  EXPECT_EQ(getSeconds(cluster, makeWork("all_gather", 1, 1, 4e8)), 0);
  EXPECT_TRUE(CostModel(cluster).getAssumptions().empty());
}

TEST(NetworkModelTest, LargePayloadsMoveAtTheRateOfTheSlowestTier) {
  Cluster cluster = makeCluster(4);
  // Within a host 80 GB/s; over hosts eight ports of 9 GB/s carry the ring together.
  EXPECT_NEAR(getSeconds(cluster, makeWork("all_gather", 8, 1, 80 * kGigabyte)), 7.0 / 8, 0.01);
  EXPECT_NEAR(getSeconds(cluster, makeWork("all_gather", 8, 4, 72 * kGigabyte)), 31.0 / 32, 0.02);
  EXPECT_NEAR(getSeconds(cluster, makeWork("reduce_scatter", 8, 4, 72 * kGigabyte)),
              getSeconds(cluster, makeWork("all_gather", 8, 4, 72 * kGigabyte)), 1e-9);
  // One member on each host has one port.
  EXPECT_NEAR(getSeconds(cluster, makeWork("all_gather", 1, 4, 9 * kGigabyte)), 3.0 / 4, 0.01);
}

TEST(NetworkModelTest, GroupsThatRunTogetherShareThePorts) {
  Cluster cluster = makeCluster(4);
  cluster.linkTiers[1].nics = 1;
  double alone = getSeconds(cluster, makeWork("all_gather", 1, 4, 9 * kGigabyte, 1));
  // A lone group has the port of the whole host.
  EXPECT_NEAR(alone, 3.0 / 4 / 8, 0.01);
  EXPECT_NEAR(getSeconds(cluster, makeWork("all_gather", 1, 4, 9 * kGigabyte, 8)), 8 * alone, 0.02);
  EXPECT_NEAR(getSeconds(cluster, makeWork("all_gather", 1, 4, 9 * kGigabyte, 2)), 2 * alone, 0.02);
  // In a program the groups along the same axes run the same command.
  EXPECT_EQ(getSeconds(cluster, makeWork("all_gather", 1, 4, 9 * kGigabyte)),
            getSeconds(cluster, makeWork("all_gather", 1, 4, 9 * kGigabyte, 8)));
  EXPECT_EQ(getSeconds(cluster, makeWork("all_gather", 8, 4, 9 * kGigabyte)),
            getSeconds(cluster, makeWork("all_gather", 8, 4, 9 * kGigabyte, 1)));
  // Two of four ports.
  cluster.linkTiers[1].nics = 4;
  EXPECT_NEAR(getSeconds(cluster, makeWork("all_gather", 2, 4, 72 * kGigabyte, 1)), 7.0 / 8 * 2, 0.02);
}

TEST(NetworkModelTest, FewDevicesOfAHostHaveARateOfTheirOwn) {
  Cluster cluster = makeCluster(1);
  cluster.linkTiers[0].partialEfficiency = 0.4;
  EXPECT_NEAR(getSeconds(cluster, makeWork("all_gather", 4, 1, 80 * kGigabyte)), 3.0 / 4 * 2, 0.01);
  EXPECT_NEAR(getSeconds(cluster, makeWork("all_gather", 8, 1, 80 * kGigabyte)), 7.0 / 8, 0.01);
}

TEST(NetworkModelTest, SwitchesThatReduceAndTreesMoveLess) {
  Cluster cluster = makeCluster(2);
  CollectiveWork within = makeWork("all_reduce", 8, 1, 80 * kGigabyte);
  EXPECT_NEAR(getSeconds(cluster, within), 14.0 / 8, 0.01);
  cluster.linkTiers[0].inSwitchEfficiency = 1.6;
  EXPECT_NEAR(getSeconds(cluster, within), 7.0 / 8, 0.01);
  // Not of fewer devices, and not what is no sum.
  EXPECT_NEAR(getSeconds(cluster, makeWork("all_reduce", 4, 1, 80 * kGigabyte)), 6.0 / 4, 0.01);
  EXPECT_NEAR(getSeconds(cluster, makeWork("all_gather", 8, 1, 80 * kGigabyte)), 7.0 / 8, 0.01);
  // Between two hosts a tree moves the payload once each way, a ring 15/8 of it.
  EXPECT_NEAR(getSeconds(cluster, makeWork("all_reduce", 8, 2, 72 * kGigabyte)), 1, 0.01);
  // A switch between hosts spares the way back of more than two.
  Cluster more = makeCluster(8);
  double ring = getSeconds(more, makeWork("all_reduce", 8, 8, 72 * kGigabyte));
  more.linkTiers[0].inSwitchEfficiency = 1.6;
  more.linkTiers[1].inSwitchEfficiency = 0.9;
  EXPECT_NEAR(getSeconds(more, makeWork("all_reduce", 8, 8, 72 * kGigabyte)), 1, 0.02);
  EXPECT_NEAR(ring, 126.0 / 64, 0.02);
}

TEST(NetworkModelTest, ExchangesUseThePortsOfAllMembers) {
  Cluster cluster = makeCluster(4);
  // Within a host each device sends 7 of 8 parts; over hosts 24 of 32 parts leave it, at 65 % of the port's rate.
  EXPECT_NEAR(getSeconds(cluster, makeWork("all_to_all", 8, 1, 80 * kGigabyte)), 7.0 / 8, 0.01);
  EXPECT_NEAR(getSeconds(cluster, makeWork("all_to_all", 8, 4, 9 * kGigabyte)), 24.0 / 32 / 0.65, 0.02);
  cluster.linkTiers[1].nics = 1;
  EXPECT_NEAR(getSeconds(cluster, makeWork("all_to_all", 8, 4, 9 * kGigabyte)), 24.0 / 32 / 0.65, 0.02);
  EXPECT_NEAR(getSeconds(cluster, makeWork("permute", 1, 4, 9 * kGigabyte)), 1, 0.01);
}

TEST(NetworkModelTest, HopsCostByTheirTier) {
  Cluster cluster = makeCluster(8);
  for (const char *kind : {"all_reduce", "all_gather", "reduce_scatter", "all_to_all", "permute"}) {
    double within = getSeconds(cluster, makeWork(kind, 8, 1, 8)),
           between = getSeconds(cluster, makeWork(kind, 1, 8, 8)), both = getSeconds(cluster, makeWork(kind, 8, 8, 64));
    EXPECT_GT(within, 0) << kind;
    EXPECT_GT(between, within) << kind;
    EXPECT_GE(both, between) << kind;
    EXPECT_LT(both, 300e-6) << kind;
  }
  // A tree has few levels.
  Cluster many = makeCluster(64);
  EXPECT_LT(getSeconds(many, makeWork("all_reduce", 8, 64, 8)),
            3 * getSeconds(cluster, makeWork("all_reduce", 8, 8, 8)));
}

TEST(NetworkModelTest, MoreBytesOrSlowerLinksNeverTakeLess) {
  Cluster cluster = makeCluster(4), slower = makeCluster(4);
  slower.linkTiers[1].link.bytesPerSecond = 5'000'000'000;
  for (const char *kind : {"all_reduce", "all_gather", "reduce_scatter", "all_to_all", "permute"})
    for (int64_t perHost : {1, 2, 8}) {
      double before = 0;
      for (double bytes = 64; bytes < 1e10; bytes *= 2) {
        double seconds = getSeconds(cluster, makeWork(kind, perHost, 4, bytes));
        EXPECT_GE(seconds, before) << kind << " of " << bytes;
        EXPECT_GE(getSeconds(slower, makeWork(kind, perHost, 4, bytes)), seconds) << kind << " of " << bytes;
        before = seconds;
      }
    }
}

/// The shares of the rates of the tiers that a collective uses.
std::vector<double> getShares(const Cluster &cluster, const CollectiveWork &work) {
  std::vector<double> shares(cluster.linkTiers.size());
  for (LinkUse use : CostModel(cluster).getUses(work))
    shares[use.tier] = use.share;
  return shares;
}

TEST(NetworkModelTest, CollectivesUseTheTiersThatJoinTheirMembers) {
  Cluster cluster = makeCluster(4);
  for (const char *kind : {"all_reduce", "all_gather", "reduce_scatter", "all_to_all", "permute"}) {
    SCOPED_TRACE(kind);
    std::vector<double> within = getShares(cluster, makeWork(kind, 4, 1, 80 * kGigabyte)),
                        between = getShares(cluster, makeWork(kind, 1, 4, 80 * kGigabyte));
    EXPECT_GT(within[0], 0.98);
    EXPECT_EQ(within[1], 0);
    EXPECT_EQ(between[0], 0);
    EXPECT_GT(between[1], kind == std::string("all_to_all") ? 0.64 : 0.98);
    EXPECT_LE(std::max(within[0], between[1]), 1);
  }
  // Eight ports of 9 GB/s take nine tenths of what a device sends within a host.
  std::vector<double> both = getShares(cluster, makeWork("all_gather", 8, 4, 720 * kGigabyte));
  EXPECT_NEAR(both[0], 0.9, 0.02);
  EXPECT_NEAR(both[1], 1, 0.02);
  // An exchange reaches a part of the ports' rate only.
  EXPECT_NEAR(getShares(cluster, makeWork("all_to_all", 8, 4, 720 * kGigabyte))[1], 0.65, 0.01);
}

TEST(NetworkModelTest, SmallPayloadsLeaveTheLinksIdle) {
  Cluster cluster = makeCluster(4);
  for (int64_t hosts : {1, 4})
    for (double share : getShares(cluster, makeWork("all_reduce", 8, hosts, 1e4)))
      EXPECT_LT(share, 0.05);
}

TEST(NetworkModelTest, ProcessorsHaveNoLinksToShare) {
  EXPECT_TRUE(CostModel(makeCluster(2, "cpu")).getUses(makeWork("all_reduce", 4, 2, 1e9)).empty());
  EXPECT_TRUE(CostModel(makeCluster(2)).getUses(makeWork("all_reduce", 1, 1, 1e9)).empty());
}

TEST(NetworkModelTest, WhatIsNotKnownIsAssumedAndSaid) {
  Cluster cluster = makeCluster(2);
  cluster.linkTiers[1].efficiency.reset();
  cluster.linkTiers[0].link.latencySeconds.reset();
  CostModel costs(cluster);
  ASSERT_EQ(costs.getAssumptions().size(), 2u);
  EXPECT_EQ(costs.getAssumptions()[0], "latency_s of tier 'link' is not in the cluster: taken as 1e-05");
  EXPECT_EQ(costs.getAssumptions()[1], "efficiency of tier 'network' is not in the cluster: taken as 0.96");
  // Between hosts of processors it is Ethernet.
  Cluster hosts = makeCluster(2, "cpu");
  hosts.linkTiers[0].link = hosts.linkTiers[1].link = {};
  EXPECT_EQ(
      CostModel(hosts).getAssumptions(),
      (std::vector<std::string>{"latency_s of tier 'link' is not in the cluster: taken as 5e-06",
                                "bandwidth_bytes_per_s of tier 'link' is not in the cluster: taken as 5e+09",
                                "latency_s of tier 'network' is not in the cluster: taken as 3e-05",
                                "bandwidth_bytes_per_s of tier 'network' is not in the cluster: taken as 1.25e+09"}));
}

/// What is needed of all rows goes over links as in an all-to-all, and is copied twice in the device's memory.
TEST(NetworkModelTest, RowsAreMovedAndCopied) {
  CostModel costs(makeCluster(2));
  GroupShape group = makeWork("all_to_all", 8, 2, 0).group;
  RowExchange rows = {group, kGigabyte, 0.25};
  OperatorWork copy;
  copy.bytes = 2 * kGigabyte / 4 * 15 / 16;
  copy.family = "copy";
  EXPECT_EQ(costs.getCost(rows).picoseconds,
            costs.getPicoseconds(makeWork("all_to_all", 8, 2, kGigabyte / 4)) + 2 * costs.getPicoseconds(copy));
  // Between hosts each row goes once for all devices of a host in a gather, and here once for each that needs it.
  EXPECT_FALSE(costs.routesRows(rows));
  EXPECT_FALSE(costs.routesRows({makeWork("all_to_all", 8, 1, 0).group, kGigabyte, 0.75}));
  EXPECT_TRUE(costs.routesRows({makeWork("all_to_all", 8, 1, 0).group, kGigabyte, 0.25}));
  EXPECT_TRUE(costs.routesRows({makeWork("all_to_all", 1, 2, 0).group, kGigabyte, 0.25}));
  EXPECT_FALSE(costs.routesRows({makeWork("all_to_all", 1, 1, 0).group, kGigabyte, 0.25}));
}

} // namespace
