#include "windlass/rt/streams.h"
#include "windlass/rt/context.h"
#include "windlass/rt/detail/team.h"
#include "windlass/rt/transport.h"

#include "one_job.h"

#include <gtest/gtest.h>

#include <chrono>
#include <set>
#include <thread>
#include <unistd.h>

namespace windlass::rt {
namespace {

std::unique_ptr<stream> worker() { return make_worker_stream(1, nullptr, 0); }

void nap() { std::this_thread::sleep_for(std::chrono::milliseconds(5)); }

TEST(Stream, InlineRunsAtOnce) {
  const std::unique_ptr<stream> s = make_inline_stream(1, nullptr, 0);
  int value = 0;
  EXPECT_TRUE(s->submit([&value]() -> status {
                 value = 1;
                 return {};
               }).is_ok());
  EXPECT_EQ(value, 1);
  EXPECT_EQ(s->submit([]() -> status { return bad_input("wrong"); }).message(), "wrong");
}

TEST(Stream, WorkerKeepsTheOrderThroughAFullRing) {
  const std::unique_ptr<stream> s = worker();
  std::vector<int> seen;
  for (int i = 0; i < 1000; ++i) {
    EXPECT_TRUE(s->submit([&seen, i]() -> status {
                   if (i == 0)
                     nap();
                   seen.push_back(i);
                   return {};
                 }).is_ok());
  }
  EXPECT_TRUE(s->synchronize().is_ok());
  ASSERT_EQ(seen.size(), 1000u);
  for (int i = 0; i < 1000; ++i)
    EXPECT_EQ(seen[static_cast<std::size_t>(i)], i);
}

TEST(Stream, WorkerFinishesBeforeItEnds) {
  int count = 0;
  {
    const std::unique_ptr<stream> s = worker();
    for (int i = 0; i < 50; ++i)
      EXPECT_TRUE(s->submit([&count]() -> status {
                     ++count;
                     return {};
                   }).is_ok());
  }
  EXPECT_EQ(count, 50);
}

TEST(Stream, TheFirstErrorSticksAndEventsStillPass) {
  const std::unique_ptr<stream> a = worker(), b = worker();
  event e;
  std::atomic<int> ran{0};
  // The calls may already report the error.
  (void)a->submit([]() -> status { return bad_input("first"); });
  (void)a->submit([]() -> status { return bad_input("second"); });
  (void)a->submit([&ran]() -> status {
    ran.fetch_add(1);
    return {};
  });
  (void)a->record(e);
  EXPECT_TRUE(b->wait(e).is_ok());
  EXPECT_TRUE(b->synchronize().is_ok());
  EXPECT_EQ(a->synchronize().message(), "first");
  EXPECT_EQ(a->submit([]() -> status { return {}; }).message(), "first");
  EXPECT_EQ(ran.load(), 0);
}

TEST(Event, OrdersTwoStreams) {
  const std::unique_ptr<stream> a = worker(), b = worker();
  event forth, back;
  int value = 0; // not atomic: the events order the accesses
  for (int i = 0; i < 200; ++i) {
    ASSERT_TRUE(a->submit([&value]() -> status {
                   value = value * 2 % 1000003;
                   return {};
                 }).is_ok());
    ASSERT_TRUE(a->record(forth).is_ok());
    ASSERT_TRUE(b->wait(forth).is_ok());
    ASSERT_TRUE(b->submit([&value]() -> status {
                   value += 1;
                   return {};
                 }).is_ok());
    ASSERT_TRUE(b->record(back).is_ok());
    ASSERT_TRUE(a->wait(back).is_ok());
  }
  EXPECT_TRUE(a->synchronize().is_ok() && b->synchronize().is_ok());
  int expected = 0;
  for (int i = 0; i < 200; ++i)
    expected = expected * 2 % 1000003 + 1;
  EXPECT_EQ(value, expected);
}

TEST(Event, AWaitTakesTheRecordThatWasIssuedBefore) {
  const std::unique_ptr<stream> a = worker(), b = worker();
  const std::unique_ptr<stream> here = make_inline_stream(1, nullptr, 0);
  event e;
  EXPECT_TRUE(b->wait(e).is_ok()); // never recorded: passes
  EXPECT_TRUE(b->synchronize().is_ok());
  std::atomic<bool> done{false};
  EXPECT_TRUE(a->submit([&done]() -> status {
                 nap();
                 done = true;
                 return {};
               }).is_ok());
  EXPECT_TRUE(a->record(e).is_ok());
  EXPECT_TRUE(here->wait(e).is_ok()); // blocks this thread
  EXPECT_TRUE(done.load());
}

const axis axes[] = {{"data", 2}, {"model", 3}};
const std::int32_t data_axis[] = {0}, model_axis[] = {1}, both_axes[] = {1, 0};
// The communicators' streams in no order.
const stream_entry streams[] = {{stream_kind::communicator, "over model"},
                                {stream_kind::communicator, "over data"},
                                {stream_kind::compute, "compute"},
                                {stream_kind::communicator, "over nothing"},
                                {stream_kind::communicator, "over both"}};
const communicator_entry communicators[] = {
    {{data_axis, 1}, 1}, {{model_axis, 1}, 0}, {{both_axes, 2}, 4}, {{nullptr, 0}, 3}};

const arena_entry arenas[] = {{memory_kind::device, 5000, "device"}, {memory_kind::pinned, 300, "pinned"}};

one_job mesh_program() {
  program p = {};
  p.arenas = {arenas, 2};
  p.communicators = {communicators, 4};
  p.scratch_bytes = 64;
  p.streams = {streams, 5};
  p.events = 3;
  return one_job({axes, 2}, p);
}

TEST(Team, KeepsItsThreadsWhateverTheNumberOfParts) {
  constexpr std::int32_t threads = 4;
#if defined(_OPENMP)
  constexpr std::size_t team = threads;
#else
  constexpr std::size_t team = 1; // without OpenMP one thread does all parts
#endif
  detail::prepare_team(threads);
  const auto run = [](std::int32_t parts) {
    std::vector<pid_t> seen(static_cast<std::size_t>(parts));
    detail::for_parts(parts, parts, [&](std::int64_t, std::int64_t, std::int32_t part) {
      seen[static_cast<std::size_t>(part)] = ::gettid(); // a new thread may get the handle of one that ended
    });
    return std::set<pid_t>(seen.begin(), seen.end());
  };
  const std::set<pid_t> all = run(threads);
  EXPECT_EQ(all.size(), team);
  for (std::int32_t parts = 1; parts < threads; ++parts) {
    for (const pid_t id : run(parts))
      EXPECT_EQ(all.count(id), 1u);
    EXPECT_EQ(run(threads), all);
  }
}

TEST(Context, PlacesRanksOnTheMesh) {
  const one_job p = mesh_program();
  std::vector<std::unique_ptr<transport>> world = make_local_transports(6);
  for (std::int32_t rank = 0; rank < 6; ++rank) {
    context c;
    ASSERT_TRUE(c.create(p, *world[static_cast<std::size_t>(rank)], 1).is_ok());
    EXPECT_EQ(c.rank(), rank);
    EXPECT_EQ(c.ranks(), 6);
    EXPECT_EQ(c.coordinate(0), rank / 3);
    EXPECT_EQ(c.coordinate(1), rank % 3);
    EXPECT_EQ(c.get_communicator(0).size(), 2);
    EXPECT_EQ(c.get_communicator(0).index(), rank / 3);
    EXPECT_EQ(c.get_communicator(1).size(), 3);
    EXPECT_EQ(c.get_communicator(1).index(), rank % 3);
    EXPECT_EQ(c.get_communicator(2).index(), rank % 3 * 2 + rank / 3); // the first axis named is the slowest
    EXPECT_EQ(c.get_communicator(3).size(), 1);
    EXPECT_EQ(&c.compute(), &c.get_stream(2));
    for (const std::int32_t beside : {0, 1, 4})
      EXPECT_FALSE(c.get_stream(beside).is_inline());
    EXPECT_TRUE(c.compute().is_inline());
    EXPECT_TRUE(c.get_stream(3).is_inline()); // nobody to wait for
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(c.at({0, 0})) % 4096, 0u);
    EXPECT_GE(c.get_arena(0).size(), 5000);
    EXPECT_EQ(c.get_arena(1).kind(), memory_kind::pinned);
    EXPECT_EQ(c.at({1, 256}), c.get_arena(1).at(256));
    EXPECT_TRUE(c.synchronize().is_ok());
  }
}

TEST(Context, RefusesAnotherNumberOfRanks) {
  std::vector<std::unique_ptr<transport>> world = make_local_transports(4);
  context c;
  const status result = c.create(mesh_program(), *world[0], 1);
  EXPECT_EQ(result.code(), status_code::bad_input);
  EXPECT_NE(result.message().find("6 ranks"), std::string::npos);
}

TEST(Context, SaysWhenMemoryIsMissing) {
  arena a;
  const status result = a.allocate(std::int64_t(1) << 60, "device");
  EXPECT_EQ(result.code(), status_code::bad_input);
}

} // namespace
} // namespace windlass::rt
