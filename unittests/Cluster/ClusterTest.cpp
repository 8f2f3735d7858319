#include "windlass/Cluster/Cluster.h"
#include "windlass/Cluster/GroupShape.h"

#include "windlass/Support/StrictJson.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include <ctime>

using namespace windlass;
using testing::HasSubstr;

static std::string getError(llvm::Error error) { return llvm::toString(std::move(error)); }

TEST(Cluster, CpuRanksShareTheHostsMemory) {
  llvm::Expected<Cluster> cluster = findCluster("cpu:4", 1000);
  ASSERT_TRUE(bool(cluster)) << getError(cluster.takeError());
  EXPECT_EQ(cluster->getDevices(), 4);
  EXPECT_EQ(cluster->getBackend(), "cpu");
  EXPECT_EQ(cluster->getDeviceMemoryBytes(), 250);
  EXPECT_EQ(cluster->describe(), "1 host of 4 x cpu");
  EXPECT_GT(getHostMemoryBytes(), 0);
}

TEST(Cluster, CpuHostsHaveANetwork) {
  Cluster cluster = llvm::cantFail(findCluster("cpu:2x4", 1000));
  EXPECT_EQ(cluster.getDevices(), 8);
  EXPECT_EQ(cluster.getDeviceMemoryBytes(), 250);
  EXPECT_EQ(cluster.describe(), "2 hosts of 4 x cpu");
  ASSERT_EQ(cluster.linkTiers.size(), 2u);
  EXPECT_EQ(cluster.linkTiers[0].devices, 4);
  EXPECT_EQ(cluster.linkTiers[1].devices, 8);
  EXPECT_EQ(cluster.linkTiers[1].nics, 1);
  ASSERT_EQ(llvm::cantFail(findCluster("cpu:2x1", 1000)).linkTiers.size(), 1u);
}

TEST(Cluster, GpuPresets) {
  Cluster cluster = llvm::cantFail(findCluster("a100-40g:4x8", 1000));
  EXPECT_EQ(cluster.getDevices(), 32);
  EXPECT_EQ(cluster.getBackend(), "cuda");
  EXPECT_EQ(cluster.getDeviceMemoryBytes(), 40000000000);
  EXPECT_EQ(cluster.describe(), "4 hosts of 8 x a100-40g");
  ASSERT_EQ(cluster.linkTiers.size(), 2u);
  EXPECT_EQ(cluster.linkTiers[0].devices, 8);
  EXPECT_EQ(cluster.linkTiers[1].devices, 32);
  EXPECT_GT(*cluster.linkTiers[0].link.bytesPerSecond, *cluster.linkTiers[1].link.bytesPerSecond);
  EXPECT_TRUE(llvm::cantFail(findCluster("h200:1", 1000)).linkTiers.empty());
  // Bridges join two cards.
  auto getTiers = [](const char *text) {
    std::vector<int64_t> devices;
    for (const LinkTier &tier : llvm::cantFail(findCluster(text, 1000)).linkTiers)
      devices.push_back(tier.devices);
    return devices;
  };
  EXPECT_EQ(getTiers("h100-pcie:2x8"), (std::vector<int64_t>{2, 8, 16}));
  EXPECT_EQ(getTiers("h100-pcie:2"), (std::vector<int64_t>{2}));
  EXPECT_EQ(getTiers("h100-pcie:3"), (std::vector<int64_t>{3}));
  EXPECT_EQ(llvm::cantFail(findCluster("h200:2x1", 1000)).linkTiers.size(), 1u);
}

/// Every figure is known and has a source, or is not known and has a reason.
TEST(Cluster, EveryFigureOfAPresetHasItsSource) {
  for (const std::string &name : getPresetNames()) {
    Cluster cluster = llvm::cantFail(findCluster(name == "cpu" ? "cpu:2" : name + ":2x2", 1 << 20));
    std::map<std::string, std::string> sources = cluster.sources;
    std::string type = "device_types." + name;
    bool isCpu = cluster.getBackend() == "cpu";
    auto take = [&](const std::string &path, bool isKnown) {
      auto found = sources.find(path);
      ASSERT_NE(found, sources.end()) << name << ": " << path;
      EXPECT_EQ(found->second.rfind("not known: ", 0) != 0, isKnown) << name << ": " << path << ": " << found->second;
      sources.erase(found);
    };
    auto takeLink = [&](const std::string &path, const Link &link) {
      take(path + ".bandwidth_bytes_per_s", link.bytesPerSecond.has_value());
      take(path + ".latency_s", link.latencySeconds.has_value());
    };
    const DeviceType &device = cluster.deviceTypes.at(name);
    take(type + ".memory_bandwidth_bytes_per_s", device.memoryBytesPerSecond.has_value());
    take("hosts[0].memory_bytes", cluster.hosts[0].memoryBytes.has_value());
    for (size_t i = 0; i < cluster.linkTiers.size(); ++i) {
      const LinkTier &tier = cluster.linkTiers[i];
      std::string path = "link_tiers[" + std::to_string(i) + "]";
      takeLink(path, tier.link);
      if (!isCpu)
        take(path + ".efficiency", tier.efficiency.has_value());
      // Without these there is nothing that has a source.
      if (tier.nics)
        take(path + ".nics", true);
      if (tier.partialEfficiency)
        take(path + ".partial_efficiency", true);
      if (tier.inSwitchEfficiency)
        take(path + ".in_switch_efficiency", true);
    }
    EXPECT_EQ(cluster.isEmulated(), name == "emulated");
    if (name != "cpu") {
      take(type + ".memory_bytes", true);
      take("hosts[0].disk_bandwidth_bytes_per_s", cluster.hosts[0].diskBytesPerSecond.has_value());
      takeLink("hosts[0].device_link", cluster.hosts[0].deviceLink);
    }
    if (isCpu) {
      take(type + ".peak_flops_per_s", false);
    } else {
      EXPECT_GE(device.peakFlopsPerSecond.size(), 2u);
      take("hosts[0].memory_bandwidth_bytes_per_s", cluster.hosts[0].memoryBytesPerSecond.has_value());
      if (device.productEfficiency)
        take(type + ".product_efficiency", true);
      if (device.attentionEfficiency)
        take(type + ".attention_efficiency", true);
      for (const auto &[dataType, peak] : device.peakFlopsPerSecond)
        take(type + ".peak_flops_per_s." + dataType, true);
      take("hosts[0].disk_bytes", cluster.hosts[0].diskBytes.has_value());
    }
    EXPECT_TRUE(sources.empty()) << name << ": " << sources.begin()->first << " is the source of nothing";
  }
}

TEST(Cluster, RefusesWhatIsNoPreset) {
  auto refusal = [](llvm::StringRef text) {
    llvm::Expected<Cluster> cluster = findCluster(text, int64_t(1) << 40);
    return cluster ? std::string("accepted") : getError(cluster.takeError());
  };
  for (const char *text : {"cpu", "cpu:", "cpu:0", "cpu:-1", "cpu:1e3", "cpu:0x4", "cpu:65537", "cpu:2:2", "cpu:2x",
                           "cpu:x2", "cpu:40000x2", "cpu:99999999999999999999"})
    EXPECT_THAT(refusal(text), HasSubstr("use cpu:N")) << text;
  for (const char *text : {"h200", "h200:", "h200:0", "h200:x8", "h200:4x", "h200:4x8x2", "h200:4X8", "h200:-4x8",
                           "h200: 8", "h200:99999999999999999999x1"})
    EXPECT_THAT(refusal(text), HasSubstr("names no number of devices: use h200:N")) << text;
  for (const char *text : {"", ":", ":2", "CPU:2", "a", "8", "{}", "{\"version\": 1}"})
    EXPECT_THAT(refusal(text), HasSubstr("is neither a preset nor a file")) << text;
  EXPECT_THAT(refusal("a100-40:8"), HasSubstr("did you mean a100-40g? Presets are cpu, emulated, v100-16g,"));
  EXPECT_THAT(refusal("h200:16"), HasSubstr("has 16 devices on a host, but hosts of h200 have at most 8"));
  EXPECT_THAT(refusal("h200:8193x8"), HasSubstr("more than 65536 devices"));
  EXPECT_THAT(refusal("h200:9223372036854775807x8"), HasSubstr("more than 65536 devices"));
  EXPECT_THAT(refusal("./none"), HasSubstr("cannot read the cluster './none'"));
  EXPECT_THAT(refusal("none.json"), HasSubstr("cannot read the cluster 'none.json'"));
  EXPECT_THAT(refusal("/dev/zero"), HasSubstr("is no regular file of at most 16 MiB"));
  llvm::Expected<Cluster> cluster = findCluster("cpu:8", 4);
  ASSERT_FALSE(bool(cluster));
  EXPECT_THAT(getError(cluster.takeError()), HasSubstr("leaves no memory per rank"));
}

TEST(Cluster, JsonRoundTrip) {
  for (const std::string &name : getPresetNames()) {
    Cluster cluster = llvm::cantFail(findCluster(name == "cpu" ? "cpu:3" : name + ":2x4", 999));
    llvm::json::Value value(toJson(cluster));
    Cluster again = llvm::cantFail(clusterFromJson(value, ""));
    EXPECT_EQ(findDifference(cluster, again), "");
    EXPECT_EQ(value, llvm::json::Value(toJson(again)));
  }
}

TEST(Cluster, DifferencesAreNamed) {
  Cluster cluster = llvm::cantFail(findCluster("h200:2x8"));
  auto change = [&](llvm::function_ref<void(Cluster &)> edit) {
    Cluster other = cluster;
    edit(other);
    return findDifference(cluster, other);
  };
  EXPECT_EQ(change([](Cluster &other) { other.hosts[0].count = 4; }), "hosts[0].count is 2, not 4");
  EXPECT_EQ(change([](Cluster &other) { other.hosts.emplace_back(); }), "hosts has 1 entries, not 2");
  EXPECT_EQ(change([](Cluster &other) { other.deviceTypes["h200"].memoryBytes = 1; }),
            "device_types.h200.memory_bytes is 141000000000, not 1");
  EXPECT_EQ(change([](Cluster &other) { other.deviceTypes["h200"].peakFlopsPerSecond.erase("f32"); }),
            "device_types.h200.peak_flops_per_s.f32 is there, which it is not");
  EXPECT_EQ(change([](Cluster &other) { other.linkTiers[1].link.latencySeconds.reset(); }),
            "link_tiers[1].latency_s is 9.6e-06, not null");
  EXPECT_EQ(change([](Cluster &other) { other.sources.clear(); }), "");
}

namespace {

/// A good file with one text replaced by another.
class ClusterFile : public testing::Test {
protected:
  static constexpr const char *kGood = R"({
    "version": 2,
    "device_types": {
      "big": {"backend": "cuda", "memory_bytes": 200, "peak_flops_per_s": {"f32": 1e12}},
      "small": {"backend": "cuda", "memory_bytes": 100, "memory_bandwidth_bytes_per_s": null, "product_efficiency": 0.5}
    },
    "hosts": [
      {"count": 2, "devices": 4, "device_type": "big", "memory_bytes": 1000, "device_link": {"latency_s": 0.5},
       "memory_bandwidth_bytes_per_s": 6e11, "flops_per_s": 5e12},
      {"count": 1, "devices": 4, "device_type": "small", "disk_bytes": 7}
    ],
    "link_tiers": [
      {"name": "pair", "devices": 2, "latency_s": 1e-6, "bandwidth_bytes_per_s": 1e9, "efficiency": 0.75, "partial_efficiency": 0.5,
       "in_switch_efficiency": 1.25},
      {"name": "host", "devices": 4},
      {"name": "net", "devices": 12}
    ],
    "device_order": [11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0]
  })";

  static llvm::Expected<Cluster> parse(llvm::StringRef text) {
    llvm::Expected<llvm::json::Value> value = parseStrictJson(text);
    if (!value)
      return value.takeError();
    return clusterFromJson(*value, "");
  }

  static std::string refusal(std::string from, std::string to) {
    std::string text = kGood;
    size_t at = text.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    text.replace(at, from.size(), to);
    llvm::Expected<Cluster> cluster = parse(text);
    return cluster ? std::string("accepted") : getError(cluster.takeError());
  }
};

} // namespace

TEST_F(ClusterFile, MayNotTakeMuchMoreMemoryThanText) {
  auto makeList = [](int count) {
    std::string text = "[";
    for (int i = 0; i < count; ++i)
      text += "{\"a\":0},";
    return text + "0]";
  };
  llvm::Expected<llvm::json::Value> large = parseStrictJson(makeList(100'000));
  EXPECT_TRUE(bool(large)) << getError(large.takeError());
  // 2.4 MB, of tables that would take 1.2 GB.
  llvm::Expected<llvm::json::Value> larger = parseStrictJson(makeList(300'000));
  ASSERT_FALSE(bool(larger));
  EXPECT_NE(getError(larger.takeError()).find("1 GiB"), std::string::npos);
}

TEST_F(ClusterFile, ArraysInArraysCountToo) {
  auto makeList = [](int count) {
    std::string nest = std::string(30, '[') + std::string(30, ']'), text = "[0";
    for (int i = 0; i < count; ++i)
      text += "," + nest;
    return text + "]";
  };
  llvm::Expected<llvm::json::Value> large = parseStrictJson(makeList(100'000));
  EXPECT_TRUE(bool(large)) << getError(large.takeError());
  // 60 MB that have one comma in 61 bytes.
  llvm::Expected<llvm::json::Value> larger = parseStrictJson(makeList(1'000'000));
  ASSERT_FALSE(bool(larger));
  EXPECT_NE(getError(larger.takeError()).find("1 GiB"), std::string::npos);
}

TEST_F(ClusterFile, IsRead) {
  llvm::Expected<Cluster> cluster = parse(kGood);
  ASSERT_TRUE(bool(cluster)) << getError(cluster.takeError());
  EXPECT_EQ(cluster->getDevices(), 12);
  EXPECT_EQ(cluster->getDeviceMemoryBytes(), 100);
  EXPECT_EQ(cluster->describe(), "2 hosts of 4 x big, 1 host of 4 x small");
  EXPECT_EQ(cluster->deviceTypes["big"].peakFlopsPerSecond["f32"], 1000000000000);
  EXPECT_FALSE(cluster->deviceTypes["small"].memoryBytesPerSecond);
  EXPECT_EQ(cluster->deviceTypes["small"].productEfficiency, 0.5);
  EXPECT_EQ(cluster->hosts[0].deviceLink.latencySeconds, 0.5);
  EXPECT_EQ(cluster->hosts[0].memoryBytesPerSecond, 600'000'000'000);
  EXPECT_EQ(cluster->hosts[0].flopsPerSecond, 5'000'000'000'000);
  EXPECT_FALSE(cluster->hosts[1].flopsPerSecond);
  EXPECT_EQ(cluster->hosts[1].diskBytes, 7);
  EXPECT_EQ(cluster->linkTiers[0].link.bytesPerSecond, 1000000000);
  EXPECT_EQ(cluster->deviceOrder.front(), 11);
  llvm::json::Value written(toJson(*cluster));
  EXPECT_EQ(findDifference(*cluster, llvm::cantFail(clusterFromJson(written, ""))), "");
  // The order of the numbers themselves needs no list.
  EXPECT_EQ(refusal("[11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0]", "null"), "accepted");
  Cluster plain = llvm::cantFail(parse(R"({"version": 1, "device_types": {"a": {"backend": "cpu"}}, "device_order": [0],
                                           "hosts": [{"count": 1, "devices": 1, "device_type": "a", "memory_bytes": 5}]})"));
  EXPECT_TRUE(plain.deviceOrder.empty());
  EXPECT_EQ(plain.getDeviceMemoryBytes(), 5);
}

TEST_F(ClusterFile, RefusalsNameTheKey) {
  EXPECT_EQ(refusal("\"version\": 2,", ""), "version is missing");
  EXPECT_THAT(refusal("\"version\": 2", "\"version\": 1"),
              HasSubstr("device_types.small.product_efficiency is no known key"));
  EXPECT_THAT(refusal("\"product_efficiency\": 0.5", "\"product_efficiency\": 1.5"),
              HasSubstr("device_types.small.product_efficiency must be a number above 0 and at most 1"));
  EXPECT_THAT(refusal("\"version\": 2", "\"version\": 3"),
              HasSubstr("version is 3, but this windlass reads versions 1 to 2"));
  EXPECT_EQ(refusal("\"hosts\"", "\"host\""), "hosts is missing");
  EXPECT_EQ(refusal("\"version\": 2,", "\"version\": 2, \"link_tier\": [],"),
            "link_tier is no known key; the nearest is 'link_tiers'");
  EXPECT_THAT(refusal("\"version\": 2,", "\"version\": 2, \"v\\u0065rsion\": 1,"),
              HasSubstr("has the key 'version' twice"));
  EXPECT_EQ(refusal("\"memory_bytes\": 200", "\"memory_gb\": 200"), "device_types.big.memory_bytes is missing");
  EXPECT_EQ(refusal("\"peak_flops_per_s\"", "\"peak_flops\""),
            "device_types.big.peak_flops is no known key; the nearest is 'peak_flops_per_s'");
  EXPECT_EQ(refusal("\"f32\"", "\"fp32\""),
            "device_types.big.peak_flops_per_s.fp32 is no known key; the nearest is 'f32'");
  EXPECT_THAT(refusal("\"backend\": \"cuda\"", "\"backend\": \"rocm\""),
              HasSubstr("device_types.big.backend is 'rocm', but back ends are"));
  EXPECT_THAT(refusal("\"big\": {", "\"big one\": {"), HasSubstr("device_types.big one is no name"));
  EXPECT_THAT(refusal("\"device_type\": \"big\"", "\"device_type\": \"bgi\""),
              HasSubstr("hosts[0].device_type is 'bgi', which device_types do not have; the nearest is 'big'"));
  EXPECT_THAT(refusal("\"device_type\": \"small\"", "\"device_type\": \"big\""),
              HasSubstr("device_types.small is used by no host"));
  EXPECT_THAT(refusal("\"latency_s\": 0.5", "\"latency\": 0.5"),
              HasSubstr("hosts[0].device_link.latency is no known key; the nearest is 'latency_s'"));
  EXPECT_THAT(refusal("\"link_tiers\": [", "\"link_tiers\": {}, \"x\": ["), HasSubstr("link_tiers must be a list"));
}

TEST_F(ClusterFile, NumbersAreAboveZeroAndFinite) {
  for (const char *number :
       {"0", "-1", "1e999", "-1e999", "0.5", "1e300", "\"1\"", "true", "[]", "2305843009213693952"}) {
    std::string text = number;
    EXPECT_THAT(refusal("\"memory_bytes\": 200", "\"memory_bytes\": " + text),
                HasSubstr("device_types.big.memory_bytes must be an integer from 1 to"));
    EXPECT_THAT(refusal("\"f32\": 1e12", "\"f32\": " + text),
                HasSubstr("device_types.big.peak_flops_per_s.f32 must be an integer from 1 to"));
    EXPECT_THAT(refusal("\"count\": 2", "\"count\": " + text),
                HasSubstr("hosts[0].count must be an integer from 1 to"));
    EXPECT_THAT(refusal("\"flops_per_s\": 5e12", "\"flops_per_s\": " + text),
                HasSubstr("hosts[0].flops_per_s must be an integer from 1 to"));
    EXPECT_THAT(refusal("\"memory_bandwidth_bytes_per_s\": 6e11", "\"memory_bandwidth_bytes_per_s\": " + text),
                HasSubstr("hosts[0].memory_bandwidth_bytes_per_s must be an integer from 1 to"));
    EXPECT_THAT(refusal("\"disk_bytes\": 7", "\"disk_bytes\": " + text),
                HasSubstr("hosts[1].disk_bytes must be an integer from 1 to"));
    EXPECT_THAT(refusal("\"bandwidth_bytes_per_s\": 1e9", "\"bandwidth_bytes_per_s\": " + text),
                HasSubstr("link_tiers[0].bandwidth_bytes_per_s must be an integer from 1 to"));
  }
  for (const char *number : {"0", "-0.0", "-1", "1e999", "-1e999", "1e300", "\"1\"", "true", "[]"})
    EXPECT_THAT(refusal("\"latency_s\": 1e-6", std::string("\"latency_s\": ") + number),
                HasSubstr("link_tiers[0].latency_s must be a number above 0 and at most 3600"));
}

TEST_F(ClusterFile, BackEndsAreNotMixed) {
  EXPECT_THAT(refusal("\"small\": {\"backend\": \"cuda\", \"memory_bytes\": 100,", "\"small\": {\"backend\": \"cpu\","),
              HasSubstr("hosts[1].device_type is of back end 'cpu', but the first host's is of 'cuda'"));
  auto read = [](std::string memory) {
    return getError(parse(R"({"version": 1, "device_types": {"a": {"backend": "cpu"}},
                              "hosts": [{"count": 1, "devices": 4, "device_type": "a")" +
                          memory + "}]}")
                        .takeError());
  };
  EXPECT_EQ(read(""), "hosts[0].memory_bytes is missing: devices of back end 'cpu' share it");
  EXPECT_EQ(read(", \"memory_bytes\": 3"), "hosts[0].memory_bytes is 3, which leaves nothing to each of 4 devices");
  for (std::string key : {"flops_per_s", "memory_bandwidth_bytes_per_s"})
    EXPECT_EQ(read(", \"memory_bytes\": 8, \"" + key + "\": 9"),
              "hosts[0]." + key +
                  " is given, but devices of back end 'cpu' are their host: say in device_types how fast "
                  "they are");
}

TEST(Cluster, EmulatedDevicesHaveMemoryAndRates) {
  constexpr int64_t kHost = int64_t(1) << 30;
  Cluster plain = llvm::cantFail(findCluster("emulated:4", kHost));
  EXPECT_EQ(plain.getDeviceMemoryBytes(), int64_t(1) << 30);
  EXPECT_EQ(plain.hosts[0].memoryBytes, kHost);
  EXPECT_EQ(plain.hosts[0].deviceLink.bytesPerSecond, std::nullopt);
  EXPECT_EQ(plain.getGivenReserve(), 0);
  Cluster cluster =
      llvm::cantFail(findCluster("emulated:2x2,device=64MiB,host=128MiB,h2d=1.5GB/s,d2h=1500MB/s,disk=20MB/s", kHost));
  EXPECT_EQ(cluster.getDevices(), 4);
  EXPECT_EQ(cluster.getDeviceMemoryBytes(), 64 << 20);
  EXPECT_EQ(cluster.hosts[0].memoryBytes, 128 << 20);
  EXPECT_EQ(cluster.hosts[0].deviceLink.bytesPerSecond, 1500000000);
  EXPECT_EQ(cluster.hosts[0].diskBytesPerSecond, 20000000);
  auto refusal = [](llvm::StringRef text) {
    llvm::Expected<Cluster> made = findCluster(text, kHost);
    return made ? std::string("accepted") : getError(made.takeError());
  };
  for (std::string setting :
       {"device=0", "device", "host=-1", "disk=2", "disk=0GB/s", "disk=nanGB/s", "h2d=GB/s", "speed=1GB/s", ""})
    EXPECT_THAT(refusal("emulated:2," + setting), HasSubstr("has the setting '" + setting + "': write emulated:N"));
  EXPECT_THAT(refusal("emulated:2,h2d=2GB/s"), HasSubstr("different rates h2d and d2h"));
  EXPECT_THAT(refusal("emulated:no,device=64MiB"), HasSubstr("names no number of ranks"));
}

TEST_F(ClusterFile, EmulatedDevicesAreNotMixedWithOthers) {
  std::string text =
      R"({"version": 1, "device_types": {"a": {"backend": "cpu"}, "b": {"backend": "cpu", "memory_bytes": 64}},
                         "hosts": [{"count": 1, "devices": 1, "device_type": "a", "memory_bytes": 64},
                                   {"count": 1, "devices": 1, "device_type": "b", "memory_bytes": 64}]})";
  EXPECT_THAT(getError(parse(text).takeError()),
              HasSubstr("hosts[1].device_type has memory_bytes where the first host's does not"));
}

TEST_F(ClusterFile, TiersJoinAllDevices) {
  EXPECT_EQ(refusal("{\"name\": \"net\", \"devices\": 12}", "{\"name\": \"net\", \"devices\": 12, \"up\": 1}"),
            "link_tiers[2].up is no known key");
  EXPECT_EQ(refusal(",\n      {\"name\": \"net\", \"devices\": 12}", ""),
            "link_tiers join 4 of 12 devices: the last must join all");
  EXPECT_THAT(refusal("\"net\", \"devices\": 12", "\"net\", \"devices\": 6"),
              HasSubstr("link_tiers[2].devices is 6, but must be a multiple of the 4 that the tier before joins"));
  EXPECT_THAT(refusal("\"net\", \"devices\": 12", "\"net\", \"devices\": 8"),
              HasSubstr("link_tiers[2].devices is 8, which does not divide the 12 devices"));
  EXPECT_THAT(refusal("\"pair\", \"devices\": 2", "\"pair\", \"devices\": 1"),
              HasSubstr("link_tiers[0].devices is 1, but must be a multiple of the 1 device that a tier begins with"));
  EXPECT_THAT(refusal("\"pair\", \"devices\": 2", "\"pair\", \"devices\": 3"),
              HasSubstr("link_tiers[0].devices is 3, which cuts a host of 4 devices in two"));
  EXPECT_THAT(refusal("\"name\": \"host\"", "\"name\": \"pair\""),
              HasSubstr("link_tiers[1].name is 'pair', as that of an earlier tier"));
  EXPECT_THAT(refusal("\"name\": \"host\"", "\"name\": \"\""), HasSubstr("link_tiers[1].name is ''"));
}

TEST_F(ClusterFile, RatesOfTiersAreSharesOfWhatThereIs) {
  std::string tier = "{\"name\": \"net\", \"devices\": 12", end = tier + "}";
  auto with = [&](std::string keys) { return refusal(end, tier + ", " + keys + "}"); };
  EXPECT_EQ(with("\"nics\": 4, \"efficiency\": 1, \"in_switch_efficiency\": 2"), "accepted");
  EXPECT_EQ(with("\"nics\": 0"), "link_tiers[2].nics must be an integer from 1 to 65536");
  EXPECT_EQ(with("\"efficiency\": 1.01"), "link_tiers[2].efficiency must be a number above 0 and at most 1");
  EXPECT_THAT(with("\"efficiency\": 0"), HasSubstr("link_tiers[2].efficiency must be a number above 0"));
  EXPECT_THAT(with("\"in_switch_efficiency\": 2.5"), HasSubstr("link_tiers[2].in_switch_efficiency must be a number"));
  EXPECT_EQ(
      refusal("\"partial_efficiency\": 0.5", "\"partial_efficiency\": 0.8"),
      "link_tiers[0].partial_efficiency is 0.80, more than the efficiency of 0.75 that groups of all devices reach");
  EXPECT_EQ(
      refusal("\"efficiency\": 0.75,", "\"nics\": 2,"),
      "link_tiers[0].nics is 2, but the tier joins devices of one host, which have no network between them: leave "
      "it out");
  EXPECT_EQ(
      refusal("\"host\", \"devices\": 4", "\"host\", \"devices\": 4, \"bandwidth_bytes_per_s\": 2e9"),
      "link_tiers[1].bandwidth_bytes_per_s is 2000000000, more than the 1000000000 of the tier before: tiers go from "
      "the fastest to the slowest");
}

TEST(GroupShape, MembersOfARunAreThoseOfEachAxis) {
  GroupShape strided;
  strided.axes = {{1, 2}, {4, 3}};
  EXPECT_EQ(strided.getMembers(), 6);
  EXPECT_EQ(strided.getSpan(), 12);
  EXPECT_EQ(strided.getMembersWithin(1), 1);
  EXPECT_EQ(strided.getMembersWithin(2), 2);
  EXPECT_EQ(strided.getMembersWithin(4), 2);
  EXPECT_EQ(strided.getMembersWithin(8), 4);
  EXPECT_EQ(strided.getMembersWithin(16), 6);
  EXPECT_EQ(GroupShape::ofNeighbours(5).getMembersWithin(4), 4);
  EXPECT_EQ(GroupShape().getMembers(), 1);
  EXPECT_EQ(GroupShape().getSpan(), 1);
}

TEST_F(ClusterFile, OrderHoldsEachDeviceOnce) {
  EXPECT_EQ(refusal("11, 10, 9", "11, 11, 9"),
            "device_order[1] must be a number from 0 to 11 that does not come before");
  EXPECT_THAT(refusal("11, 10, 9", "12, 10, 9"), HasSubstr("device_order[0] must be"));
  EXPECT_THAT(refusal("11, 10, 9", "1e999, 10, 9"), HasSubstr("device_order[0] must be"));
  EXPECT_EQ(refusal("11, 10, 9", "11, 10"), "device_order has 11 entries, but there are 12 devices");
}

TEST_F(ClusterFile, HugeFilesEndSoon) {
  // The time of a processor: other work on the machine does not change it.
  std::clock_t begin = std::clock();
  EXPECT_EQ(refusal("\"count\": 2", "\"count\": 25000"), "hosts make more than 65536 devices, the most of a cluster");
  EXPECT_EQ(refusal("\"count\": 2", "\"count\": 65536"), "hosts make more than 65536 devices, the most of a cluster");
  std::string host = R"({"count": 1, "devices": 1, "device_type": "a", "memory_bytes": 1})", hosts = host, types, order;
  for (int i = 1; i < 65536; ++i)
    hosts += "," + host;
  for (int i = 0; i < 65536; ++i)
    order += (i > 0 ? "," : "") + std::to_string(65535 - i);
  std::string tail = R"(, "link_tiers": [{"name": "all", "devices": 65536}], "device_order": [)" + order + "]}";
  std::string head = R"({"version": 1, "device_types": {"a": {"backend": "cpu"})";
  llvm::Expected<Cluster> large = parse(head + "}, \"hosts\": [" + hosts + "]" + tail);
  ASSERT_TRUE(bool(large)) << getError(large.takeError());
  EXPECT_EQ(large->getDevices(), 65536);
  for (int i = 0; i < 60000; ++i)
    types += ",\"t" + std::to_string(i) + "\": {\"backend\": \"cpu\"}";
  EXPECT_THAT(getError(parse(head + types + "}, \"hosts\": [" + hosts + "]" + tail).takeError()),
              HasSubstr("is used by no host"));
  EXPECT_THAT(getError(parse(std::string(100000, '[')).takeError()), HasSubstr("nests deeper"));
  EXPECT_THAT(getError(parse(R"({"a": "b)").takeError()), HasSubstr("without an end"));
  EXPECT_THAT(getError(parse("{").takeError()), HasSubstr("is no JSON"));
  EXPECT_EQ(getError(parse("[]").takeError()), "is no JSON object");
  EXPECT_LT((std::clock() - begin) / CLOCKS_PER_SEC, 10);
}
