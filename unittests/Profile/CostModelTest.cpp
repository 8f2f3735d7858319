#include "windlass/Profile/CostModel.h"
#include "windlass/Profile/Profile.h"

#include "gtest/gtest.h"

using namespace windlass;

namespace {

/// Two hosts of four devices: 1 TFLOP/s, 100 GB/s, 10 GB/s and 1 us within a host, 1 GB/s and 20 us between hosts.
Cluster makeCluster() {
  Cluster cluster;
  DeviceType &type = cluster.deviceTypes["d"];
  type.backend = "cuda";
  type.memoryBytes = int64_t(1) << 30;
  type.memoryBytesPerSecond = 100'000'000'000;
  type.peakFlopsPerSecond["f32"] = 1'000'000'000'000;
  HostGroup &group = cluster.hosts.emplace_back();
  group.count = 2;
  group.devices = 4;
  group.deviceType = "d";
  cluster.linkTiers = {{"near", 4, {1e-6, 10'000'000'000}}, {"far", 8, {20e-6, 1'000'000'000}}};
  for (LinkTier &tier : cluster.linkTiers)
    tier.efficiency = 1;
  return cluster;
}

TEST(CostModelTest, OperatorsFollowTheRoofline) {
  CostModel costs(makeCluster());
  int64_t launch = costs.getPicoseconds(OperatorWork());
  EXPECT_GT(launch, 0);
  // With little traffic, time grows with the arithmetic alone, and is above that at the peak.
  int64_t small = costs.getPicoseconds(OperatorWork{1e12, 1e6}), large = costs.getPicoseconds(OperatorWork{3e12, 1e6});
  EXPECT_NEAR(large - launch, 3 * (small - launch), 2);
  EXPECT_GT(small - launch, 1'000'000'000'000);
  EXPECT_EQ(costs.getPicoseconds(OperatorWork{1e12, 2e6}), small);
  // With little arithmetic, it grows with the traffic alone.
  EXPECT_EQ(costs.getPicoseconds(OperatorWork{2, 1e9}), costs.getPicoseconds(OperatorWork{1, 1e9}));
  EXPECT_GT(costs.getPicoseconds(OperatorWork{1, 1e9}) - launch, 10'000'000'000);
}

TEST(CostModelTest, NarrowProductsRunAtTheirOwnRate) {
  Cluster cluster = makeCluster();
  OperatorWork work{1e12, 1e6}, narrow{1e12, 1e6, /*isNarrow=*/true};
  EXPECT_EQ(CostModel(cluster).getPicoseconds(narrow), CostModel(cluster).getPicoseconds(work));
  cluster.deviceTypes["d"].peakFlopsPerSecond["bf16"] = 4'000'000'000'000;
  CostModel costs(cluster);
  int64_t launch = costs.getPicoseconds(OperatorWork());
  EXPECT_NEAR(costs.getPicoseconds(work) - launch, 4 * (costs.getPicoseconds(narrow) - launch), 4);
  // Each of the two has a rate of its own.
  EXPECT_EQ(CostModel(cluster, nullptr, "bf16").getPicoseconds(narrow), costs.getPicoseconds(narrow));
  EXPECT_EQ(CostModel(cluster, nullptr, "f16").getPicoseconds(narrow), costs.getPicoseconds(work));
  cluster.deviceTypes["d"].peakFlopsPerSecond["f16"] = 2'000'000'000'000;
  CostModel half(cluster, nullptr, "f16");
  EXPECT_NEAR(half.getPicoseconds(narrow) - launch, 2 * (costs.getPicoseconds(narrow) - launch), 4);
  cluster.deviceTypes["d"].backend = "cpu";
  EXPECT_EQ(CostModel(cluster).getPicoseconds(narrow), CostModel(cluster).getPicoseconds(work));
}

TEST(CostModelTest, Tf32ProductsRunAtTheirOwnRate) {
  Cluster cluster = makeCluster();
  OperatorWork work{1e12, 1e6, false, "matmul"}, rounded{1e12, 1e6, false, kTf32Products};
  EXPECT_EQ(CostModel(cluster).getPicoseconds(rounded), CostModel(cluster).getPicoseconds(work));
  cluster.deviceTypes["d"].peakFlopsPerSecond["tf32"] = 8'000'000'000'000;
  CostModel costs(cluster);
  int64_t launch = costs.getPicoseconds(OperatorWork());
  EXPECT_NEAR(costs.getPicoseconds(work) - launch, 8 * (costs.getPicoseconds(rounded) - launch), 8);
}

TEST(CostModelTest, ProductsAndAttentionsReachTheirSharesOfThePeak) {
  Cluster cluster = makeCluster();
  OperatorWork product{1e12, 1e6, false, "matmul"}, attention{1e12, 1e6, false, "attention"};
  auto getSeconds = [&](const OperatorWork &work) {
    CostModel costs(cluster);
    return static_cast<double>(costs.getPicoseconds(work) - costs.getPicoseconds(OperatorWork())) * 1e-12;
  };
  EXPECT_NEAR(getSeconds(product), 1 / 0.75, 1e-9);
  EXPECT_NEAR(getSeconds(attention), 1 / 0.75, 1e-9);
  cluster.deviceTypes["d"].productEfficiency = 0.5;
  cluster.deviceTypes["d"].attentionEfficiency = 0.25;
  EXPECT_NEAR(getSeconds(product), 2, 1e-9);
  EXPECT_NEAR(getSeconds(attention), 4, 1e-9);
  // A step waits for the slowest device.
  cluster.deviceTypes["slow"] = cluster.deviceTypes["d"];
  cluster.deviceTypes["slow"].productEfficiency = 0.2;
  cluster.hosts.push_back(cluster.hosts[0]);
  cluster.hosts[1].deviceType = "slow";
  EXPECT_NEAR(getSeconds(product), 5, 1e-9);
  EXPECT_NEAR(getSeconds(attention), 4, 1e-9);
}

TEST(CostModelTest, AProfilesDeviceReplacesTheDefaults) {
  Profile profile;
  profile.cluster = makeCluster();
  DeviceModel &device = profile.device.emplace();
  device.productShare = 0.5;
  device.productHalfFlops = 1e9;
  device.memoryShare = 0.25;
  device.attentionFactor = 3;
  device.launchSeconds = 1e-3;
  device.errorShare = 0.2;
  CostModel costs(profile.cluster, &profile);
  auto getSeconds = [&](const OperatorWork &work) { return static_cast<double>(costs.getPicoseconds(work)) * 1e-12; };
  EXPECT_NEAR(getSeconds({1e12, 1e6}), 2 + 1e-3, 1e-9);
  EXPECT_NEAR(getSeconds({1e9, 1e6, false, "matmul"}), 4e-3 + 1e-3, 1e-9);
  EXPECT_NEAR(getSeconds({1, 1e9, false, "map"}), 40e-3 + 1e-3, 1e-9);
  EXPECT_NEAR(getSeconds({1, 1e9, false, "attention_grad.narrow"}), 120e-3 + 1e-3, 1e-9);
  Cost cost = costs.getCost(OperatorWork{1, 1});
  EXPECT_EQ(cost.source, CostSource::Fitted);
  EXPECT_EQ(cost.errorShare, 0.2);
}

TEST(CostModelTest, MessagesCostTheLinksBetweenTwoDevices) {
  Cluster cluster = makeCluster();
  CostModel costs(cluster);
  // A message is a permutation of two ranks as far apart; CPU ranks have the latency and the bytes.
  CollectiveWork far = {"permute", {}, 1e6}, near = far;
  far.group.axes.push_back({4, 2});
  near.group.axes.push_back({1, 2});
  EXPECT_EQ(costs.getMessageCost(0, 3, 1e6).picoseconds, costs.getPicoseconds(near));
  // Neighbours on two hosts.
  EXPECT_EQ(costs.getMessageCost(3, 4, 1e6).picoseconds, costs.getPicoseconds(far));
  EXPECT_EQ(costs.getMessageCost(4, 3, 1e6).picoseconds, costs.getMessageCost(3, 4, 1e6).picoseconds);
  EXPECT_GT(costs.getMessageCost(3, 4, 1e6).picoseconds, 5 * costs.getMessageCost(0, 3, 1e6).picoseconds);
  Cluster processors = cluster;
  processors.deviceTypes["d"].backend = "cpu";
  EXPECT_EQ(CostModel(processors).getMessageCost(3, 4, 1e6).picoseconds, 20'000'000 + 1'000'000'000);
  EXPECT_EQ(CostModel(processors).getMessageCost(0, 1, 0).picoseconds, 1'000'000);
  cluster.deviceOrder = {0, 4, 1, 5, 2, 6, 3, 7};
  CostModel reordered(cluster);
  EXPECT_EQ(reordered.getMessageCost(0, 1, 1e6).picoseconds, costs.getMessageCost(0, 4, 1e6).picoseconds);
  EXPECT_EQ(reordered.getMessageCost(0, 2, 1e6).picoseconds, costs.getMessageCost(0, 1, 1e6).picoseconds);
  // What was measured within a host says nothing about two.
  Profile profile;
  profile.cluster = makeCluster();
  profile.collectives[{"permute", 2, 1'000'000}] = {5e-3, 0, 5};
  CostModel measured(profile.cluster, &profile);
  EXPECT_EQ(measured.getMessageCost(0, 3, 1e6).picoseconds, 5'000'000'000);
  EXPECT_EQ(measured.getMessageCost(3, 4, 1e6).picoseconds, costs.getMessageCost(3, 4, 1e6).picoseconds);
}

TEST(CostModelTest, HostsOfGpusComputeAtADevicesPartOfTheirRates) {
  Cluster cluster = makeCluster();
  OperatorWork work{1e6, 1e9}, arithmetic{1e12, 4};
  auto getSeconds = [&](const OperatorWork &of) {
    std::optional<Cost> cost = CostModel(cluster).getHostCost("", of);
    return cost ? static_cast<double>(cost->picoseconds) * 1e-12 : -1;
  };
  constexpr double launch = 2e-6, share = 0.7;
  EXPECT_EQ(getSeconds(work), -1);
  // As fast as the links to the devices, and 12 FLOPs for each byte.
  cluster.hosts[0].deviceLink.bytesPerSecond = 10'000'000'000;
  EXPECT_NEAR(getSeconds(work), 0.1 / share + launch, 1e-12);
  EXPECT_NEAR(getSeconds(arithmetic), 1e12 / 120e9 + launch, 1e-9);
  // Four devices share what the host has.
  cluster.hosts[0].memoryBytesPerSecond = 80'000'000'000;
  EXPECT_NEAR(getSeconds(work), 0.05 / share + launch, 1e-12);
  EXPECT_NEAR(getSeconds(arithmetic), 1e12 / 240e9 + launch, 1e-9);
  cluster.hosts[0].flopsPerSecond = 4'000'000'000'000;
  EXPECT_NEAR(getSeconds(arithmetic), 1 + launch, 1e-9);
  // The slowest host decides, and one of which nothing is known.
  cluster.hosts.push_back(cluster.hosts[0]);
  cluster.hosts[1].memoryBytesPerSecond = 40'000'000'000;
  EXPECT_NEAR(getSeconds(work), 0.1 / share + launch, 1e-12);
  cluster.hosts[1].memoryBytesPerSecond.reset();
  cluster.hosts[1].deviceLink.bytesPerSecond.reset();
  EXPECT_EQ(getSeconds(work), -1);
  // An optimizer that was measured: 28 bytes for each element.
  Profile profile;
  profile.cluster = cluster;
  profile.rates["host_adam_elements_per_second"] = 1e9;
  std::optional<Cost> cost = CostModel(cluster, &profile).getHostCost("", {12e6, 28e6});
  ASSERT_TRUE(cost);
  EXPECT_NEAR(static_cast<double>(cost->picoseconds) * 1e-12, 1e-3 + launch, 1e-12);
  EXPECT_EQ(cost->source, CostSource::Fitted);
}

TEST(CostModelTest, WhatIsNotKnownIsAssumedAndSaid) {
  Cluster cluster = makeCluster();
  cluster.deviceTypes["d"].peakFlopsPerSecond.clear();
  cluster.linkTiers[1].link.bytesPerSecond.reset();
  CostModel costs(cluster);
  ASSERT_EQ(costs.getAssumptions().size(), 2u);
  EXPECT_NE(costs.getAssumptions()[0].find("peak_flops_per_s of f32 of 'd'"), std::string::npos);
  EXPECT_NE(costs.getAssumptions()[1].find("tier 'far'"), std::string::npos);
}

} // namespace
