#include "collective_checks.h"

#include "windlass/rt/streams.h"
#include "windlass/rt/transport.h"

#include <gtest/gtest.h>

#include <chrono>
#include <thread>

namespace windlass::rt {
namespace {

/// Runs f(transport) for each rank on a thread of its own.
template <class F> void run_ranks(std::int32_t ranks, F f) {
  std::vector<std::unique_ptr<transport>> world = make_local_transports(ranks);
  std::vector<std::thread> threads;
  for (std::unique_ptr<transport> &each : world)
    threads.emplace_back([&f, &each] { f(*each); });
  for (std::thread &t : threads)
    t.join();
}

class Local : public ::testing::TestWithParam<std::int32_t> {};

TEST_P(Local, Collectives) {
  std::vector<std::string> failures(static_cast<std::size_t>(GetParam()));
  run_ranks(GetParam(), [&](transport &world) {
    failures[static_cast<std::size_t>(world.rank())] = testing::check_collectives(world);
  });
  for (const std::string &failure : failures)
    EXPECT_EQ(failure, "");
}

INSTANTIATE_TEST_SUITE_P(Ranks, Local, ::testing::Values(1, 2, 3, 4, 6, 8));

TEST(Local, AbortReleasesTheOthers) {
  std::vector<status> results(4);
  const auto start = std::chrono::steady_clock::now();
  run_ranks(4, [&](transport &world) {
    std::unique_ptr<communicator> all;
    status result = world.make_communicator({0, 1, 2, 3}, all);
    if (world.rank() == 2) {
      std::this_thread::sleep_for(std::chrono::milliseconds(30));
      world.abort(bad_input("no more data"));
      return;
    }
    float value = 1;
    while (result.is_ok())
      result = all->all_reduce(reinterpret_cast<std::byte *>(&value), 1, element_type::f32, reduction::sum);
    results[static_cast<std::size_t>(world.rank())] = result;
  });
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(2));
  for (const std::size_t rank : {0u, 1u, 3u}) {
    EXPECT_EQ(results[rank].code(), status_code::stopped);
    EXPECT_EQ(results[rank].message(), "another rank ended the job: rank 2: no more data");
  }
}

TEST(Local, AbortDuringCollectives) {
  // A rank that leaves frees its buffers at once; the others must not read them any more.
  for (int round = 0; round < 20; ++round)
    run_ranks(3, [&](transport &world) {
      std::unique_ptr<communicator> all;
      status result = world.make_communicator({0, 1, 2}, all);
      std::vector<float> values(20000, 1.0f);
      for (int i = 0; result.is_ok(); ++i) {
        if (world.rank() == 0 && i == 5)
          world.abort(bad_input("over"));
        result =
            all->all_reduce(reinterpret_cast<std::byte *>(values.data()), 20000, element_type::f32, reduction::sum);
      }
      EXPECT_EQ(result.code(), status_code::stopped);
    });
}

TEST(Local, OverlapsOnWorkerStreams) {
  // Two communicators at once, each on a stream of its own, ordered against the main thread by events.
  run_ranks(2, [](transport &world) {
    std::unique_ptr<communicator> a, b;
    ASSERT_TRUE(world.make_communicator({0, 1}, a).is_ok());
    ASSERT_TRUE(world.make_communicator({0, 1}, b).is_ok());
    const std::unique_ptr<stream> main = make_inline_stream(1, nullptr, 0), sa = make_worker_stream(1, nullptr, 0),
                                  sb = make_worker_stream(1, nullptr, 0);
    event ready, done_a, done_b;
    float x[3] = {1, 2, 3}, y[4] = {0, 0, 0, 0}, z[2] = {float(world.rank()), 5};
    const view vx = dense_view(reinterpret_cast<std::byte *>(x), element_type::f32, {3});
    const view vy = dense_view(reinterpret_cast<std::byte *>(y), element_type::f32, {4});
    const view vz = dense_view(reinterpret_cast<std::byte *>(z), element_type::f32, {2});
    for (int i = 0; i < 50; ++i) {
      ASSERT_TRUE(main->record(ready).is_ok());
      ASSERT_TRUE(sa->wait(ready).is_ok() && sb->wait(ready).is_ok());
      ASSERT_TRUE(all_reduce(*sa, *a, vx, reduction::max).is_ok());
      ASSERT_TRUE(all_gather(*sb, *b, vy, vz).is_ok());
      ASSERT_TRUE(sa->record(done_a).is_ok() && sb->record(done_b).is_ok());
      ASSERT_TRUE(main->wait(done_a).is_ok() && main->wait(done_b).is_ok());
      EXPECT_EQ(x[2], 3.0f);
      EXPECT_EQ(y[0], 0.0f);
      EXPECT_EQ(y[2], 1.0f);
    }
    EXPECT_EQ(all_gather(*sa, *a, vx, vz).code(), status_code::internal);
    EXPECT_TRUE(sa->synchronize().is_ok() && sb->synchronize().is_ok());
  });
}

} // namespace
} // namespace windlass::rt
