// A cluster whose times are worked out by hand: a byte takes a nanosecond wherever it goes, a message 1000 besides.
#ifndef WINDLASS_UNITTESTS_PLANNER_TESTCLUSTER_H
#define WINDLASS_UNITTESTS_PLANNER_TESTCLUSTER_H

#include "windlass/Profile/CostModel.h"
#include "windlass/Profile/Profile.h"

namespace windlass {

struct TestCluster {
  /// Makes the cluster. Collectives run beside operators on devices of the back end "cuda", not on those of "cpu".
  explicit TestCluster(int64_t devices, const std::string &backend = "cpu")
      : cluster(makeCluster(devices, backend)), profile(makeProfile(cluster)), costs(cluster, &profile) {}

  Cluster cluster;
  Profile profile;
  CostModel costs;

private:
  static Cluster makeCluster(int64_t devices, const std::string &backend) {
    Cluster cluster;
    DeviceType &type = cluster.deviceTypes["test"];
    type.backend = backend;
    type.memoryBytes = int64_t(1) << 30;
    type.memoryBytesPerSecond = 1'000'000'000;
    type.peakFlopsPerSecond["f32"] = 1'000'000'000'000'000;
    HostGroup &host = cluster.hosts.emplace_back();
    host.devices = devices;
    host.deviceType = "test";
    LinkTier &tier = cluster.linkTiers.emplace_back();
    tier.name = "link";
    tier.devices = devices;
    tier.link = {1e-6, 1'000'000'000};
    return cluster;
  }

  static Profile makeProfile(const Cluster &cluster) {
    Profile profile;
    profile.cluster = cluster;
    DeviceModel &device = profile.device.emplace();
    device.memoryShare = 1;
    device.launchSeconds = 0;
    return profile;
  }
};

} // namespace windlass

#endif
