// Ranks that meet by a launcher's variables and exchange over TCP, here as threads.
#include "collective_checks.h"
#include "message_checks.h"

#include "windlass/rt/transport.h"

#include "transport/socket.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <thread>

#include <sys/socket.h>

namespace windlass::rt {
namespace {

deadline soon() { return std::chrono::steady_clock::now() + std::chrono::seconds(30); }

/// Returns the address of this host's own network, and a port of it that is free.
launch_variables meeting(std::int32_t rank, std::int32_t size) {
  socket_address here;
  tcp_socket door;
  EXPECT_TRUE(find_address("127.0.0.1", 0, here).is_ok());
  EXPECT_TRUE(door.listen(here, 0).is_ok());
  return {rank, size, "127.0.0.1", door.port()};
}

/// Runs f(transport) for each rank of a job on a thread of its own; returns what became of joining it.
template <class F> std::vector<status> run_ranks(std::int32_t ranks, F f) {
  const launch_variables first = meeting(0, ranks);
  std::vector<status> results(static_cast<std::size_t>(ranks));
  std::vector<std::thread> threads;
  for (std::int32_t rank = 0; rank < ranks; ++rank)
    threads.emplace_back([&, rank] {
      launch_variables own = first;
      own.rank = rank;
      std::unique_ptr<transport> world;
      status &result = results[static_cast<std::size_t>(rank)];
      result = make_tcp_transport(own, world, false);
      if (result.is_ok())
        f(*world);
    });
  for (std::thread &t : threads)
    t.join();
  return results;
}

class Tcp : public ::testing::TestWithParam<std::int32_t> {};

TEST_P(Tcp, CollectivesAndMessages) {
  std::vector<std::string> failures(static_cast<std::size_t>(GetParam()));
  const std::vector<status> joined = run_ranks(GetParam(), [&](transport &world) {
    EXPECT_EQ(world.size(), GetParam());
    EXPECT_TRUE(world.is_one_host());
    EXPECT_FALSE(world.is_one_process());
    std::string &failure = failures[static_cast<std::size_t>(world.rank())];
    failure = testing::check_collectives(world);
    if (failure.empty() && world.size() > 1)
      failure = testing::check_messages(world);
  });
  for (const status &result : joined)
    EXPECT_TRUE(result.is_ok()) << result.message();
  for (const std::string &failure : failures)
    EXPECT_EQ(failure, "");
}

INSTANTIATE_TEST_SUITE_P(Ranks, Tcp, ::testing::Values(1, 2, 3, 4, 8));

TEST(Tcp, ARankThatGoesEndsWhatOthersWaitFor) {
  std::vector<status> results(3);
  run_ranks(3, [&](transport &world) {
    std::unique_ptr<communicator> all;
    ASSERT_TRUE(world.make_communicator({0, 1, 2}, all).is_ok());
    if (world.rank() == 1)
      return;
    std::vector<float> values(1 << 20, 1.0f);
    results[static_cast<std::size_t>(world.rank())] =
        all->all_reduce(reinterpret_cast<std::byte *>(values.data()), 1 << 20, element_type::f32, reduction::sum);
  });
  // One of the two may hear of the other, which has gone because of it.
  for (const std::size_t rank : {0u, 2u}) {
    EXPECT_EQ(results[rank].code(), status_code::stopped);
    EXPECT_EQ(results[rank].kind(), diagnostic::rank_lost);
    EXPECT_NE(results[rank].message().find("the connection to rank"), std::string::npos) << results[rank].message();
  }
}

TEST(Tcp, AnotherSizeIsAnError) {
  run_ranks(2, [&](transport &world) {
    std::unique_ptr<communicator> both;
    ASSERT_TRUE(world.make_communicator({0, 1}, both).is_ok());
    testing::message_set set(*both);
    if (world.rank() == 0)
      set.send(1, 8);
    else
      set.receive(0, 4);
    const status result = set.run_together();
    if (world.rank() == 1) {
      EXPECT_EQ(result.message(), "member 0 sends 8 bytes, but member 1 receives 4");
    }
  });
}

TEST(Tcp, WhoIsNotOfTheJobIsSentAway) {
  const launch_variables first = meeting(0, 2);
  socket_address there;
  ASSERT_TRUE(find_address(first.address, first.port, there).is_ok());
  std::thread other([&] {
    tcp_socket silent, talks;
    ASSERT_TRUE(silent.connect(there, soon()).is_ok());
    ASSERT_TRUE(talks.connect(there, soon()).is_ok());
    ASSERT_TRUE(talks.write("GET / HTTP/1.0\r\n\r\n and more than a greeting has", 45, soon()).is_ok());
    silent = tcp_socket();
    std::unique_ptr<transport> world;
    const status joined = make_tcp_transport({1, 2, first.address, first.port}, world, false);
    EXPECT_TRUE(joined.is_ok()) << joined.message();
  });
  std::unique_ptr<transport> world;
  const status joined = make_tcp_transport(first, world, false);
  other.join();
  EXPECT_TRUE(joined.is_ok()) << joined.message();
}

TEST(Tcp, RanksThatContradictEachOtherAreNamed) {
  struct {
    std::int32_t rank, size;
    const char *message;
  } cases[] = {{2, 3, "has RANK=2 and WORLD_SIZE=3, but rank 0 has WORLD_SIZE=2"},
               {0, 2, "has RANK=0 and WORLD_SIZE=2, but rank 0 has WORLD_SIZE=2"}};
  for (const auto &each : cases) {
    const launch_variables first = meeting(0, 2);
    status theirs;
    std::thread other([&] {
      // Rank 0 itself would wait for others instead: another process says that it is that.
      std::unique_ptr<transport> world;
      if (each.rank != 0) {
        theirs = make_tcp_transport({each.rank, each.size, first.address, first.port}, world, false);
        return;
      }
      socket_address there;
      tcp_socket door;
      ASSERT_TRUE(find_address(first.address, first.port, there).is_ok());
      ASSERT_TRUE(door.connect(there, soon()).is_ok());
      const struct {
        std::uint64_t magic = 0x31737361'6c646e77;
        std::int32_t rank = 0, size = 2;
        std::uint64_t host = 0, port = 1;
      } greeting;
      theirs = door.write(&greeting, sizeof greeting, soon());
    });
    std::unique_ptr<transport> world;
    const status ours = make_tcp_transport(first, world, false);
    other.join();
    EXPECT_EQ(ours.code(), status_code::bad_input);
    EXPECT_NE(ours.message().find(each.message), std::string::npos) << ours.message();
    if (each.rank != 0) {
      EXPECT_NE(theirs.message().find("has not answered: "), std::string::npos) << theirs.message();
    }
  }
}

TEST(Tcp, VariablesAreChecked) {
  const char *names[] = {"RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT", "TORCHELASTIC_USE_AGENT_STORE"};
  const auto set = [&](std::initializer_list<const char *> values) {
    std::size_t i = 0;
    for (const char *value : values)
      value ? setenv(names[i++], value, 1) : unsetenv(names[i++]);
  };
  launch_variables out;
  set({nullptr, nullptr, nullptr, nullptr, nullptr});
  EXPECT_FALSE(is_started_by_variables());
  EXPECT_NE(read_launch_variables(out).message().find("the variable WORLD_SIZE is not set"), std::string::npos);
  set({"1", "4", "node1", "29500", nullptr});
  EXPECT_TRUE(is_started_by_variables());
  ASSERT_TRUE(read_launch_variables(out).is_ok());
  EXPECT_EQ(out.rank, 1);
  EXPECT_EQ(out.size, 4);
  EXPECT_EQ(out.address, "node1");
  EXPECT_EQ(out.port, 29500);
  set({"1", "4", "node1", "29500", "True"});
  ASSERT_TRUE(read_launch_variables(out).is_ok());
  EXPECT_EQ(out.port, 29501);
  for (const auto &wrong : {std::pair("4", "29500"), std::pair("-1", "29500"), std::pair("", "29500"),
                            std::pair("1x", "29500"), std::pair("1", "0"), std::pair("1", "70000")}) {
    set({wrong.first, "4", "node1", wrong.second, nullptr});
    EXPECT_NE(read_launch_variables(out).message().find("is no whole number from"), std::string::npos) << wrong.first;
  }
  set({"1", "4", "", "29500", nullptr});
  EXPECT_NE(read_launch_variables(out).message().find("MASTER_ADDR is not set"), std::string::npos);
  set({nullptr, nullptr, nullptr, nullptr, nullptr});
}

} // namespace
} // namespace windlass::rt
