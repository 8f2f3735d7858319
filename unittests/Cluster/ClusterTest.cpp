#include "windlass/Cluster/Cluster.h"

#include "windlass/Support/StrictJson.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

using namespace windlass;
using testing::HasSubstr;

static std::string getError(llvm::Error error) { return llvm::toString(std::move(error)); }

TEST(Cluster, PresetSharesTheHostsMemory) {
  llvm::Expected<Cluster> cluster = parseCluster("cpu:4", 1000);
  ASSERT_TRUE(bool(cluster)) << getError(cluster.takeError());
  EXPECT_EQ(cluster->getDevices(), 4);
  EXPECT_EQ(cluster->memoryBytes, 250);
  EXPECT_GT(getHostMemoryBytes(), 0);
}

TEST(Cluster, RefusesWhatItDoesNotKnow) {
  for (const char *text : {"", "cpu", "cpu:", "cpu:0", "cpu:-1", "cpu:1e3", "cpu:0x4", "cpu:65537", "cpu:2:2", "h200:8",
                           "cpu:99999999999999999999", "CPU:2"}) {
    llvm::Expected<Cluster> cluster = parseCluster(text, int64_t(1) << 40);
    ASSERT_FALSE(bool(cluster)) << text;
    EXPECT_THAT(getError(cluster.takeError()), HasSubstr("use cpu:N")) << text;
  }
  llvm::Expected<Cluster> cluster = parseCluster("cpu:8", 4);
  ASSERT_FALSE(bool(cluster));
  EXPECT_THAT(getError(cluster.takeError()), HasSubstr("leaves no memory per rank"));
}

TEST(Cluster, JsonRoundTrip) {
  Cluster cluster = llvm::cantFail(parseCluster("cpu:3", 999));
  EXPECT_TRUE(llvm::cantFail(clusterFromJson(toJson(cluster))) == cluster);
}

TEST(Cluster, JsonNamesWhatIsWrong) {
  auto read = [](llvm::StringRef text) {
    llvm::Expected<llvm::json::Value> value = parseStrictJson(text);
    if (!value)
      return getError(value.takeError());
    llvm::Expected<Cluster> cluster = clusterFromJson(*value);
    return cluster ? std::string() : getError(cluster.takeError());
  };
  EXPECT_EQ(read("[]"), "cluster is no object");
  EXPECT_EQ(read(R"({"device": "cpu", "hosts": 1, "memory_bytes": 1})"), "cluster.devices_per_host is missing");
  EXPECT_EQ(read(R"({"device": "cpu", "hosts": 1, "devices_per_host": 1, "memory_bytes": 1, "devicess": 1})"),
            "cluster.devicess is no known key; the nearest is 'device'");
  EXPECT_THAT(read(R"({"device": "cpu", "hosts": 1e999, "devices_per_host": 1, "memory_bytes": 1})"),
              HasSubstr("hosts must be an integer"));
  EXPECT_THAT(read(R"({"device": "tpu", "hosts": 1, "devices_per_host": 1, "memory_bytes": 1})"), HasSubstr("'tpu'"));
  EXPECT_THAT(read(R"({"device": "cpu", "dev\u0069ce": "cpu"})"), HasSubstr("has the key 'device' twice"));
  EXPECT_THAT(read(std::string(100000, '[')), HasSubstr("nests deeper"));
  EXPECT_THAT(read(R"({"a": "b)"), HasSubstr("without an end"));
  EXPECT_THAT(read("{"), HasSubstr("is no JSON"));
}
