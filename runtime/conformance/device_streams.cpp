// Streams, events, memory and errors of a device. What commands do is seen after the stream has been waited for.
#include "one_job.h"
#include "testing.h"

#include "windlass/rt/context.h"
#include "windlass/rt/detail/cuda_stream.h"
#include "windlass/rt/map.h"
#include "windlass/rt/transport.h"

#include <thread>

namespace windlass::rt::testing {
namespace {

std::unique_ptr<stream> worker() { return make_worker_stream(1, nullptr, 0); }

struct doubled_and_one {
  static constexpr const char *name = "doubled_and_one";
  using outputs = type_list<float>;
  using inputs = type_list<float>;
  WINDLASS_FN static void apply(float &r0, float a0) { r0 = a0 >= 1e6f ? a0 - 1e6f : 2 * a0 + 1; }
};
struct negated {
  static constexpr const char *name = "negated";
  using outputs = type_list<float>;
  using inputs = type_list<float>;
  WINDLASS_FN static void apply(float &r0, float a0) { r0 = -a0; }
};

TEST(DeviceStream, KeepsTheOrder) {
  const std::unique_ptr<stream> s = worker();
  const tensor x({300000});
  EXPECT_STATUS_OK(fill(*s, x, 0));
  float expected = 0;
  for (int i = 0; i < 40; ++i) {
    EXPECT_STATUS_OK(map(*s, doubled_and_one(), {x}, {x}));
    doubled_and_one::apply(expected, expected);
  }
  EXPECT_STATUS_OK(s->synchronize());
  for (const std::int64_t i : {std::int64_t(0), x.elements() / 2, x.elements() - 1})
    EXPECT_EQ(x[i], expected);
}

/// Work of two streams that wait for each other, forth and back.
status go_round(stream &a, stream &b, event &forth, event &back, const tensor &x) {
  WINDLASS_TRY(map(a, doubled_and_one(), {x}, {x}));
  WINDLASS_TRY(a.record(forth));
  WINDLASS_TRY(b.wait(forth));
  WINDLASS_TRY(map(b, negated(), {x}, {x}));
  WINDLASS_TRY(b.record(back));
  return a.wait(back);
}

TEST(DeviceGraph, RunsAgainWhatWasRecorded) {
  const std::unique_ptr<stream> a = worker(), b = worker();
  const std::vector<stream *> both = {a.get(), b.get()};
  event forth, back;
  const tensor x({3000});
  float expected = 1;
  const auto once = [&] {
    doubled_and_one::apply(expected, expected);
    expected = -expected;
  };
  EXPECT_STATUS_OK(fill(*b, x, 1));
  EXPECT_STATUS_OK(b->record(back)); // of before: the recording does not wait for it
  std::unique_ptr<detail::recorded_commands> commands;
  EXPECT_STATUS_OK(detail::begin_recording(both));
  EXPECT_STATUS_OK(a->wait(back));
  EXPECT_STATUS_OK(go_round(*a, *b, forth, back, x));
  EXPECT_STATUS_OK(detail::end_recording(both, true, commands));
  ASSERT_NE(commands, nullptr);
  EXPECT_EQ(x[0], 1); // recorded only
  for (int i = 0; i < 3; ++i) {
    EXPECT_STATUS_OK(commands->run());
    once();
    EXPECT_STATUS_OK(b->wait(back)); // of the recording, after which the stream is anyway
    EXPECT_STATUS_OK(map(*b, doubled_and_one(), {x}, {x}));
    doubled_and_one::apply(expected, expected);
  }
  EXPECT_STATUS_OK(b->record(back));
  EXPECT_STATUS_OK(a->wait(back)); // for the last command of b
  EXPECT_STATUS_OK(go_round(*a, *b, forth, back, x));
  once();
  EXPECT_STATUS_OK(a->synchronize());
  EXPECT_STATUS_OK(b->synchronize());
  for (const std::int64_t i : {std::int64_t(0), x.elements() - 1})
    EXPECT_EQ(x[i], expected);
}

TEST(DeviceGraph, WhatCannotBeRecordedRunsAsBefore) {
  const std::unique_ptr<stream> a = worker(), b = worker();
  const std::vector<stream *> both = {a.get(), b.get()};
  event forth, back;
  const tensor x({100});
  EXPECT_STATUS_OK(fill(*a, x, 1));
  std::unique_ptr<detail::recorded_commands> commands;
  EXPECT_STATUS_OK(detail::begin_recording(both));
  EXPECT_FALSE(a->synchronize().is_ok()); // a device that only records never comes to an end
  EXPECT_STATUS_OK(detail::end_recording(both, false, commands));
  EXPECT_EQ(commands, nullptr);
  EXPECT_STATUS_OK(go_round(*a, *b, forth, back, x));
  EXPECT_STATUS_OK(a->synchronize());
  EXPECT_EQ(x[0], -3);
}

TEST(DeviceEvent, OrdersTwoStreams) {
  const std::unique_ptr<stream> a = worker(), b = worker();
  event forth, back;
  const tensor x({100000});
  EXPECT_STATUS_OK(fill(*a, x, 1));
  float expected = 1;
  for (int i = 0; i < 20; ++i) {
    EXPECT_STATUS_OK(map(*a, doubled_and_one(), {x}, {x}));
    EXPECT_STATUS_OK(a->record(forth));
    EXPECT_STATUS_OK(b->wait(forth));
    EXPECT_STATUS_OK(map(*b, negated(), {x}, {x}));
    EXPECT_STATUS_OK(b->record(back));
    EXPECT_STATUS_OK(a->wait(back));
    doubled_and_one::apply(expected, expected);
    expected = -expected;
  }
  EXPECT_STATUS_OK(a->synchronize()); // has waited for all of b
  for (const std::int64_t i : {std::int64_t(0), x.elements() - 1})
    EXPECT_EQ(x[i], expected);
}

TEST(DeviceEvent, OneThatWasNeverRecordedPasses) {
  const std::unique_ptr<stream> s = worker();
  event e;
  EXPECT_STATUS_OK(s->wait(e));
  EXPECT_STATUS_OK(s->synchronize());
}

TEST(DeviceStream, TheFirstErrorSticksAndOthersGoOn) {
  const std::unique_ptr<stream> a = worker(), b = worker();
  const tensor table({4, 3}), out({2, 3}), x({8});
  index_tensor ids({2}, 0, 4);
  ids[1] = 9;
  event e;
  EXPECT_STATUS_OK(embedding(*a, out, table, ids, view(), 0)); // nobody has looked yet
  EXPECT_STATUS_OK(a->record(e));
  EXPECT_STATUS_OK(b->wait(e));
  EXPECT_STATUS_OK(fill(*b, x, 3));
  EXPECT_STATUS_OK(b->synchronize());
  EXPECT_EQ(x[7], 3.0f);
  const status found = a->synchronize();
  EXPECT_EQ(found.code(), status_code::bad_input);
  EXPECT_EQ(found.message(), "id 9 at position 1 is outside of the table of 4; check the data");
  EXPECT_EQ(fill(*a, x, 4).message(), found.message());
  EXPECT_EQ(a->synchronize().message(), found.message());
  EXPECT_STATUS_OK(b->synchronize());
  EXPECT_EQ(x[7], 3.0f);
}

const axis axes[] = {{"data", 2}, {"model", 3}};
const std::int32_t data_axis[] = {0};
const stream_entry streams[] = {{stream_kind::communicator, "over data"}, {stream_kind::compute, "compute"}};
const communicator_entry communicators[] = {{{data_axis, 1}, 0}};

const arena_entry arenas[] = {{memory_kind::device, 5000, "device"}, {memory_kind::pinned, 300, "pinned"}};

one_job mesh_program() {
  program p = {};
  p.arenas = {arenas, 2};
  p.communicators = {communicators, 0};
  p.scratch_bytes = 64;
  p.streams = {streams + 1, 1};
  p.events = 3;
  return one_job({axes, 2}, p);
}

TEST(DeviceContext, CollectivesGoBeforeKernels) {
  const axis alone[] = {{"data", 1}};
  one_job p({alone, 1}, mesh_program().p);
  p.p.streams = {streams, 2};
  p.p.communicators = {communicators, 1};
  std::vector<std::unique_ptr<transport>> world = make_local_transports(1);
  context c;
  EXPECT_STATUS_OK(c.create(p, *world[0], 1));
  int least = 0, greatest = 0, of_compute = 1, of_collectives = 1;
  EXPECT_STATUS_OK(cuda::check(cudaDeviceGetStreamPriorityRange(&least, &greatest), "a range"));
  EXPECT_STATUS_OK(cuda::check(cudaStreamGetPriority(cuda::native(c.compute()), &of_compute), "a priority"));
  EXPECT_STATUS_OK(cuda::check(cudaStreamGetPriority(cuda::native(c.get_stream(0)), &of_collectives), "a priority"));
  EXPECT_EQ(of_compute, 0);
  EXPECT_EQ(of_collectives, greatest);
  EXPECT_LT(greatest, 0) << "this device has no priorities";
}

TEST(DeviceContext, ItsArenaIsReachedByCopiesOnly) {
  const one_job p = mesh_program();
  std::vector<std::unique_ptr<transport>> world = make_local_transports(6);
  context c;
  EXPECT_STATUS_OK(c.create(p, *world[4], 1));
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(c.at({0, 0})) % 256, 0u);
  EXPECT_GE(c.get_arena(0).size(), 5000);
  EXPECT_FALSE(c.compute().is_inline());
  std::vector<std::byte> there(5000), back(5000);
  for (std::size_t i = 0; i < there.size(); ++i)
    there[i] = std::byte(i * 31 % 251);
  EXPECT_STATUS_OK(detail::copy_to_device(c.compute(), c.at({0, 0}), there.data(), 5000));
  EXPECT_STATUS_OK(detail::copy_to_device(c.compute(), c.at({0, 1000}), there.data(), 17));
  EXPECT_STATUS_OK(detail::copy_to_host(c.compute(), back.data(), c.at({0, 0}), 5000));
  std::copy(there.begin(), there.begin() + 17, there.begin() + 1000);
  EXPECT_TRUE(back == there);
  EXPECT_STATUS_OK(c.synchronize());
}

TEST(DeviceContext, RefusesAnotherNumberOfRanks) {
  std::vector<std::unique_ptr<transport>> world = make_local_transports(4);
  context c;
  const status result = c.create(mesh_program(), *world[0], 1);
  EXPECT_EQ(result.code(), status_code::bad_input);
  EXPECT_NE(result.message().find("6 ranks"), std::string::npos);
}

/// Ranks that say to be processes.
class process final : public transport {
public:
  explicit process(transport &inner) : inner_(inner) {}
  std::int32_t rank() const override { return inner_.rank(); }
  std::int32_t size() const override { return inner_.size(); }
  bool is_one_host() const override { return true; }
  status make_communicator(const std::vector<std::int32_t> &members, std::unique_ptr<communicator> &out) override {
    return inner_.make_communicator(members, out);
  }
  void abort(const status &why) override { inner_.abort(why); }

private:
  transport &inner_;
};

TEST(DeviceMemory, NoTwoProcessesShareADevice) {
  constexpr std::int32_t ranks = 65; // more than any machine has devices
  std::vector<std::unique_ptr<transport>> world = make_local_transports(ranks);
  std::vector<std::thread> threads;
  for (std::unique_ptr<transport> &each : world)
    threads.emplace_back([&each] {
      process mine(*each);
      const status result = detail::open_device(mine, 0);
      EXPECT_EQ(result.code(), status_code::bad_input);
      EXPECT_NE(result.message().find("ranks 0 and "), std::string::npos) << result.message();
      EXPECT_NE(result.message().find(" are processes with the same CUDA device"), std::string::npos);
    });
  for (std::thread &t : threads)
    t.join();
}

TEST(DeviceMemory, SaysWhatIsMissing) {
  for (const memory_kind kind : {memory_kind::device, memory_kind::pinned}) {
    arena a;
    const status result = a.allocate(std::int64_t(1) << 50, "test", kind);
    EXPECT_EQ(result.code(), status_code::bad_input);
    EXPECT_NE(result.message().find("1125899906842624 bytes for the test arena"), std::string::npos)
        << result.message();
  }
  const tensor x({8}); // and the next allocation works
  test_stream s;
  EXPECT_STATUS_OK(fill(s, x, 1));
}

} // namespace
} // namespace windlass::rt::testing
