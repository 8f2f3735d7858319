// What a device holds beside an arena, as every back end declares it.
#include "windlass/rt/reserve.h"
#include "windlass/rt/detail/backend.h"

#include <gtest/gtest.h>

namespace windlass::rt {
namespace {

constexpr std::int64_t mib = std::int64_t(1) << 20;

reserve declare(std::vector<reserve_need::communicator> communicators, bool is_one_host = true) {
  reserve_need need;
  need.has_processes = true;
  need.is_one_host = is_one_host;
  need.communicators = std::move(communicators);
  return declare_device_reserve(need);
}

TEST(Reserve, CausesMakeTheTotal) {
  const reserve declared = declare({{8, true}});
  std::int64_t sum = 0;
  for (const auto &[cause, bytes] : declared.causes())
    sum += bytes;
  EXPECT_EQ(sum, declared.total());
}

TEST(Reserve, ADeviceAloneHoldsContextModulesAndWorkspaces) {
  const reserve alone = declare({});
  EXPECT_GE(alone.total(), 600 * mib);
  EXPECT_EQ(alone.communication, 0);
  EXPECT_EQ(alone.threads, 0);
  EXPECT_EQ(declare({{1, true}}).total(), alone.total()) << "a communicator of one rank sends nothing";
  reserve_need need;
  need.scratch_bytes = 5 * mib;
  EXPECT_EQ(declare_device_reserve(need).workspaces, alone.workspaces + 5 * mib);
}

TEST(Reserve, CommunicatorsGrowWithTheirNumberAndSize) {
  const std::int64_t pair = declare({{2, false}}).communication, ring = declare({{4, false}}).communication;
  // Measured on four A100: NVIDIA/nccl#964.
  EXPECT_GE(pair, 544 * mib);
  EXPECT_GE(ring, 688 * mib);
  EXPECT_GT(ring, pair);
  EXPECT_EQ(declare({{4, false}, {2, false}}).communication, pair + ring);
  EXPECT_EQ(declare({{1024, false}}).communication, ring) << "a ring has two neighbours";
  EXPECT_GT(declare({{4, false}}, /*is_one_host=*/false).communication, ring);
  // Measured on eight H100: 3.28 GB for an all-to-all, NVIDIA/nccl#1685.
  EXPECT_GE(declare({{8, true}}).communication - declare({{8, false}}).communication, 3'280'000'000 * 99 / 100);
  EXPECT_GT(declare({{8, true}}).communication, declare({{4, true}}).communication);
}

TEST(Reserve, ThreadsOfOneProcessShareADevice) {
  reserve_need need;
  need.communicators = {{4, true}};
  EXPECT_EQ(declare_device_reserve(need).communication, 0);
}

/// The memory of a device is none of theirs.
TEST(Reserve, StreamsOfCopiesAndOfTheHostTakeThreads) {
  reserve_need none, copies, host;
  none.threads = copies.threads = host.threads = 4;
  copies.copy_streams = host.host_streams = 1;
  const std::int64_t alone = declare_reserve(none).total();
  EXPECT_EQ(declare_reserve(copies).total() > alone, !detail::backend_has_device);
  EXPECT_EQ(declare_reserve(host).total() > declare_reserve(copies).total(), !detail::backend_has_device);
}

} // namespace
} // namespace windlass::rt
