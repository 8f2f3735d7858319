// Collectives and events of ranks that are threads: they share one device, or have one each and use NCCL.
#include "testing.h"

#include "communicator.h"
#include "windlass/rt/detail/cuda_stream.h"

#include "windlass/rt/transport.h"

#include <numeric>
#include <thread>

namespace windlass::rt::testing {
namespace {

/// Sums of these depend on their order.
float value_of(std::int64_t i, std::int32_t member) {
  return static_cast<float>(std::sin(static_cast<double>(i * 7 + member * 13 + 1))) *
         (member % 2 == 0 ? 1024.0f : 0.001f);
}

tensor filled(std::int64_t n, std::int32_t member) {
  tensor t({n});
  for (std::int64_t i = 0; i < n; ++i)
    t[i] = value_of(i, member);
  return t;
}

/// How a member opens its device, and then makes its communicator from that of the hosts.
struct device_group {
  std::function<status(transport &)> open;
  std::function<status(const transport &, std::unique_ptr<communicator> hosts, stream &,
                       std::unique_ptr<communicator> &)>
      make;
};

void check_member(transport &world, const device_group &group, std::int64_t n) {
  const std::int32_t size = world.size(), me = world.rank();
  std::vector<std::int32_t> members(static_cast<std::size_t>(size));
  std::iota(members.begin(), members.end(), 0);
  ASSERT_TRUE(group.open(world).is_ok());
  const std::unique_ptr<stream> compute = make_worker_stream(1, nullptr, 0), side = make_worker_stream(1, nullptr, 0);
  std::unique_ptr<communicator> c;
  ASSERT_TRUE(world.make_communicator(members, c).is_ok());
  const status made = group.make(world, std::move(c), *side, c);
  ASSERT_TRUE(made.is_ok()) << made.message();
  event ready, done;
  const auto run = [&](const std::function<status()> &issue) {
    EXPECT_STATUS_OK(compute->record(ready));
    EXPECT_STATUS_OK(side->wait(ready));
    EXPECT_STATUS_OK(issue());
    EXPECT_STATUS_OK(side->record(done));
    EXPECT_STATUS_OK(compute->wait(done));
    EXPECT_STATUS_OK(compute->synchronize());
    EXPECT_STATUS_OK(side->synchronize());
  };

  for (const reduction kind : {reduction::sum, reduction::max, reduction::min}) {
    const tensor x = filled(n, me);
    run([&] { return all_reduce(*side, *c, x, kind); });
    for (std::int64_t i = 0; i < n; ++i) {
      float e = value_of(i, 0);
      for (std::int32_t m = 1; m < size; ++m) {
        const float next = value_of(i, m);
        e = kind == reduction::sum ? e + next : kind == reduction::max ? std::max(e, next) : std::min(e, next);
      }
      ASSERT_EQ(x[i], e) << "element " << i << " of " << n; // the same bits on all: the order is fixed
    }
  }
  const tensor x = filled(n, me), all({n * size});
  run([&] { return all_gather(*side, *c, all, x); });
  for (std::int64_t i = 0; i < n * size; ++i)
    ASSERT_EQ(all[i], value_of(i % n, static_cast<std::int32_t>(i / n)));

  const tensor whole = filled(n * size, me), part({n});
  run([&] { return reduce_scatter(*side, *c, part, whole); });
  for (std::int64_t i = 0; i < n; ++i) {
    float e = value_of(me * n + i, 0);
    for (std::int32_t m = 1; m < size; ++m)
      e += value_of(me * n + i, m);
    ASSERT_EQ(part[i], e);
  }
  run([&] { return all_to_all(*side, *c, all, whole); });
  for (std::int64_t i = 0; i < n * size; ++i)
    ASSERT_EQ(all[i], value_of(me * n + i % n, static_cast<std::int32_t>(i / n)));

  run([&] { return c->permute(part.v().data, x.v().data, n * 4, (me + 1) % size, (me + size - 1) % size); });
  for (std::int64_t i = 0; i < n; ++i)
    ASSERT_EQ(part[i], value_of(i, (me + size - 1) % size));
  run([&] { return c->broadcast(part.v().data, n * 4, size - 1); });
  for (std::int64_t i = 0; i < n; ++i)
    ASSERT_EQ(part[i], value_of(i, (2 * size - 2) % size));
}

void check_collectives(std::int32_t ranks, const device_group &group) {
  for (const std::int64_t n : {1, 17, 5000}) {
    std::vector<std::unique_ptr<transport>> world = make_local_transports(ranks);
    std::vector<std::thread> threads;
    for (std::unique_ptr<transport> &each : world)
      threads.emplace_back([&] { check_member(*each, group, n); });
    for (std::thread &t : threads)
      t.join();
  }
}

class SharedDevice : public ::testing::TestWithParam<std::int32_t> {};

TEST_P(SharedDevice, Collectives) {
  check_collectives(GetParam(),
                    {[](transport &world) { return detail::open_device(world, 0); }, detail::make_device_communicator});
}

INSTANTIATE_TEST_SUITE_P(Ranks, SharedDevice, ::testing::Values(1, 2, 3, 4, 8));

/// NCCL refuses two ranks of one device, so two need two; sums of two numbers are the same in any order.
class Nccl : public ::testing::TestWithParam<std::int32_t> {};

TEST_P(Nccl, Collectives) {
  int devices = 0;
  if (cudaGetDeviceCount(&devices) != cudaSuccess || devices < GetParam())
    GTEST_SKIP() << "needs " << GetParam() << " devices, there are " << devices;
  if (const status opened = cuda::open_nccl(); !opened.is_ok())
    GTEST_SKIP() << opened.message();
  check_collectives(GetParam(), {[](transport &world) { return cuda::check(cudaSetDevice(world.rank()), "a device"); },
                                 [](const transport &, std::unique_ptr<communicator> hosts, stream &s,
                                    std::unique_ptr<communicator> &out) {
                                   return cuda::make_nccl_communicator(std::move(hosts), s, out);
                                 }});
}

INSTANTIATE_TEST_SUITE_P(Ranks, Nccl, ::testing::Values(1, 2));

} // namespace
} // namespace windlass::rt::testing
