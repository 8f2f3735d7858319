// Messages between ranks that are threads.
#include "message_checks.h"

#include <gtest/gtest.h>

#include <chrono>
#include <thread>

namespace windlass::rt {
namespace {

using testing::message_set;

/// Runs f(transport, communicator of all) for each rank on a thread of its own.
template <class F> void run_ranks(std::int32_t ranks, F f) {
  std::vector<std::unique_ptr<transport>> world = make_local_transports(ranks);
  std::vector<std::int32_t> all(static_cast<std::size_t>(ranks));
  std::iota(all.begin(), all.end(), 0);
  std::vector<std::thread> threads;
  for (std::unique_ptr<transport> &each : world)
    threads.emplace_back([&] {
      std::unique_ptr<communicator> c;
      ASSERT_TRUE(each->make_communicator(all, c).is_ok());
      f(*each, *c);
    });
  for (std::thread &t : threads)
    t.join();
}

class LocalMessages : public ::testing::TestWithParam<std::int32_t> {};

TEST_P(LocalMessages, Arrive) {
  std::vector<std::string> failures(static_cast<std::size_t>(GetParam()));
  run_ranks(GetParam(), [&](transport &world, communicator &) {
    failures[static_cast<std::size_t>(world.rank())] = testing::check_messages(world);
  });
  for (const std::string &failure : failures)
    EXPECT_EQ(failure, "");
}

INSTANTIATE_TEST_SUITE_P(Ranks, LocalMessages, ::testing::Values(2, 3, 4, 8));

void nap() { std::this_thread::sleep_for(std::chrono::milliseconds(30)); }

TEST(LocalMessages, AbortReleasesWhoWaits) {
  std::vector<status> results(4);
  run_ranks(4, [&](transport &world, communicator &c) {
    message_set set(c);
    if (world.rank() == 2) {
      nap();
      world.abort(bad_input("no more data"));
      return;
    }
    if (world.rank() == 0) // waits for its receiver, for its sender, and for one of two
      set.send(2, 100);
    if (world.rank() == 1)
      set.receive(2, 100);
    if (world.rank() == 3) {
      set.send(0, 5);
      set.receive(1, 7);
    }
    results[static_cast<std::size_t>(world.rank())] = set.run_together();
  });
  for (const std::size_t rank : {0u, 1u, 3u}) {
    EXPECT_EQ(results[rank].code(), status_code::stopped);
    EXPECT_EQ(results[rank].message(), "another rank ended the job: rank 2: no more data");
  }
}

TEST(LocalMessages, AbortDuringMessages) {
  // A rank that leaves frees its buffers at once; nobody may read them any more.
  for (int round = 0; round < 50; ++round)
    run_ranks(3, [&](transport &world, communicator &c) {
      status result;
      for (int i = 0; result.is_ok(); ++i) {
        if (world.rank() == 0 && i == 5)
          world.abort(bad_input("over"));
        message_set set(c);
        for (std::int32_t m = 0; m < 3; ++m)
          if (m != c.index()) {
            set.send(m, 50000);
            set.receive(m, 50000);
          }
        result = set.run_together();
      }
      EXPECT_EQ(result.code(), status_code::stopped);
    });
}

TEST(LocalMessages, AnotherSizeIsAnError) {
  run_ranks(2, [&](transport &world, communicator &c) {
    message_set set(c);
    if (world.rank() == 0)
      set.send(1, 8);
    else
      set.receive(0, 4);
    const status result = set.run_together();
    if (world.rank() == 0)
      return; // its message is taken, or the other rank has ended the job
    EXPECT_EQ(result.code(), status_code::internal);
    EXPECT_EQ(result.message(), "member 0 sends 8 bytes, but member 1 receives 4");
    world.abort(result);
  });
}

TEST(LocalMessages, NothingIsBuffered) {
  // Two that both send before they receive would need a buffer: they wait until the job is ended.
  std::atomic<int> sent{0};
  run_ranks(3, [&](transport &world, communicator &c) {
    if (world.rank() == 2) {
      nap();
      nap();
      EXPECT_EQ(sent.load(), 0);
      world.abort(bad_input("they wait for each other"));
      return;
    }
    message_set set(c);
    set.send(1 - c.index(), 1);
    set.receive(1 - c.index(), 1);
    const status result = set.run_in_turn();
    sent += result.is_ok();
    EXPECT_EQ(result.message(), "another rank ended the job: rank 2: they wait for each other");
  });
}

TEST(LocalMessages, TooManyInOneTransfer) {
  run_ranks(2, [&](transport &, communicator &c) {
    const std::unique_ptr<stream> s = make_inline_stream(1, nullptr, 0);
    float x = 0;
    const view v = dense_view(reinterpret_cast<std::byte *>(&x), element_type::f32, {1});
    const message_view m = {direction::send, 1 - c.index(), v};
    const status result = transfer(*s, c, {m, m, m, m, m, m, m, m, m, m, m, m, m, m, m, m, m, m, m, m, m, m,
                                           m, m, m, m, m, m, m, m, m, m, m, m, m, m, m, m, m, m, m, m, m, m,
                                           m, m, m, m, m, m, m, m, m, m, m, m, m, m, m, m, m, m, m, m, m});
    EXPECT_EQ(result.message(), "more than 64 messages in one transfer");
  });
}

} // namespace
} // namespace windlass::rt
