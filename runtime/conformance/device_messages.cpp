// Messages between ranks that are threads: they share one device, or have one each and use NCCL. Hosts meet while they
// issue on a shared device, so that a wrong order of issue stops them, as NCCL stops the device.
#include "device_groups.h"
#include "testing.h"

#include "windlass/rt/map.h"

#if defined(WINDLASS_CUDA_EMULATED)
#include "streams.h"
#endif

#include <atomic>
#include <chrono>

namespace windlass::rt::testing {
namespace {

struct added {
  static constexpr const char *name = "added";
  using outputs = type_list<float>;
  using inputs = type_list<float, float>;
  WINDLASS_FN static void apply(float &r0, float a0, float a1) { r0 = a0 + a1; }
};

tensor numbered(std::int64_t n, std::int32_t from, std::int32_t number) {
  tensor t({n});
  for (std::int64_t i = 0; i < n; ++i)
    t[i] = static_cast<float>(i % 8191 + 10000 * from + 100000 * number);
  return t;
}

void expect_numbered(const tensor &t, std::int32_t from, std::int32_t number) {
  for (std::int64_t i = 0; i < t.elements(); ++i)
    ASSERT_EQ(t[i], static_cast<float>(i % 8191 + 10000 * from + 100000 * number)) << i << " of " << t.elements();
}

/// A member with a compute stream, a peer stream and a communicator for each direction around the ring.
struct ring_member {
  std::int32_t size, me, next, last;
  std::unique_ptr<stream> compute, up, down;
  std::unique_ptr<communicator> upward, downward;

  ring_member(transport &world, const device_group &group)
      : size(world.size()), me(world.rank()), next((me + 1) % size), last((me + size - 1) % size) {
    EXPECT_STATUS_OK(group.open(world));
    compute = make_worker_stream(1, nullptr, 0);
    up = make_worker_stream(1, nullptr, 0);
    down = make_worker_stream(1, nullptr, 0);
    upward = make_group(world, group, *up);
    downward = make_group(world, group, *down);
  }
  void synchronize() {
    for (stream *each : {compute.get(), up.get(), down.get()})
      EXPECT_STATUS_OK(each->synchronize());
  }
};

/// Sends messages of one size around the ring: one after another, beginning with member 0, and all at once.
void check_sizes(ring_member &m, std::int64_t n) {
  const tensor in = numbered(n, m.me, 1), out({n}), together({n});
  if (m.me == 0)
    EXPECT_STATUS_OK(send(*m.up, *m.upward, in, m.next));
  EXPECT_STATUS_OK(receive(*m.up, *m.upward, out, m.last));
  if (m.me != 0)
    EXPECT_STATUS_OK(send(*m.up, *m.upward, in, m.next));
  EXPECT_STATUS_OK(transfer(*m.up, *m.upward, {{direction::send, m.next, in}, {direction::receive, m.last, together}}));
  m.synchronize();
  expect_numbered(out, m.last, 1);
  expect_numbered(together, m.last, 1);
}

/// Many messages keep their order, and two directions go on streams of their own. Each message is written by a command
/// of another stream after the one before has gone from the same memory, and read before the next comes.
void check_many(ring_member &m) {
  constexpr std::int64_t n = 3000;
  constexpr std::int32_t count = 40;
  const tensor in({n}), out({n}), back({n}), sum({n}), back_sum({n});
  event written, gone, came, read, returned;
  const auto run = [&](std::initializer_list<status> results) {
    for (const status &result : results)
      EXPECT_STATUS_OK(result);
  };
  run({fill(*m.compute, sum, 0), fill(*m.compute, back_sum, 0)});
  for (std::int32_t k = 0; k < count; ++k) {
    run({m.compute->wait(gone), fill(*m.compute, in, static_cast<float>((m.me + 1) * (k + 1))),
         m.compute->record(written), m.up->wait(written)});
    const message_view sent = {direction::send, m.next, in}, received = {direction::receive, m.last, out};
    run({transfer(*m.up, *m.upward, {sent, received}), m.up->record(gone), m.up->record(came)});
    // The other way go the numbers of before.
    run({m.compute->wait(came), m.down->wait(came)});
    const message_view returns = {direction::send, m.last, out}, takes = {direction::receive, m.next, back};
    run({transfer(*m.down, *m.downward, {returns, takes}), m.down->record(returned), m.compute->wait(returned)});
    run({map(*m.compute, added(), {sum}, {sum, out}), map(*m.compute, added(), {back_sum}, {back_sum, back}),
         m.compute->record(read), m.up->wait(read)});
  }
  m.synchronize();
  const float total = count * (count + 1) / 2;
  for (const std::int64_t i : {std::int64_t(0), n - 1}) {
    EXPECT_EQ(sum[i], static_cast<float>(m.last + 1) * total);
    EXPECT_EQ(back_sum[i], static_cast<float>(m.me + 1) * total); // what this member has sent itself
  }
}

void check_messages(transport &world, const device_group &group) {
  ring_member m(world, group);
  for (const std::int64_t n : {1, 17, 5000, 2 << 20}) // up to 8 MiB
    check_sizes(m, n);
  check_many(m);
}

TEST_P(SharedDevice, Messages) {
  run_members(GetParam(), [](transport &world) {
    if (world.size() > 1)
      check_messages(world, shared_device_group());
  });
}

TEST_P(Nccl, Messages) {
  if (const std::string missing = missing_for_nccl(GetParam()); !missing.empty())
    GTEST_SKIP() << missing;
  run_members(GetParam(), [](transport &world) {
    if (world.size() > 1)
      check_messages(world, nccl_group());
  });
}

#if defined(WINDLASS_CUDA_EMULATED) // on devices only a group that is aborted from outside ends so
TEST(NcclMessages, AWrongOrderStops) {
  if (cuda::emulation::has_drawn_orders())
    GTEST_SKIP() << "nobody waits for what is sent";
  std::atomic<int> sent{0};
  run_members(3, [&](transport &world) {
    std::unique_ptr<ring_member> m = std::make_unique<ring_member>(world, nccl_group());
    const tensor x({4});
    if (world.rank() == 2) {
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
      EXPECT_EQ(sent.load(), 0); // both wait for the other one to receive
      m = nullptr;
      return;
    }
    const status result = send(*m->up, *m->upward, x, 1 - m->me);
    sent += result.is_ok();
    EXPECT_EQ(result.message(), "NCCL: a transfer failed: remote process exited");
  });
}
#endif

TEST(SharedDeviceMessages, LostPeersAndWrongOrders) {
  run_members(3, [](transport &world) {
    ring_member m(world, shared_device_group());
    const tensor x({4});
    if (world.rank() == 2) {
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
      world.abort(bad_input("no more data"));
      return;
    }
    // Two that both send before they receive wait for each other, until a third one ends the job.
    const status result = send(*m.up, *m.upward, x, 1 - m.me);
    EXPECT_EQ(result.code(), status_code::stopped);
    EXPECT_EQ(result.message(), "another rank ended the job: rank 2: no more data");
    EXPECT_EQ(receive(*m.up, *m.upward, x, 1 - m.me).code(), status_code::stopped);
  });
}

TEST(SharedDeviceMessages, AnotherSizeIsAnError) {
  run_members(2, [](transport &world) {
    ring_member m(world, shared_device_group());
    const tensor x({4}), y({3});
    const status result = m.me == 0 ? send(*m.up, *m.upward, x, 1) : receive(*m.up, *m.upward, y, 0);
    if (m.me == 1) {
      EXPECT_EQ(result.message(), "member 0 sends 16 bytes, but member 1 receives 12");
      world.abort(result);
    } else {
      EXPECT_EQ(result.code(), status_code::stopped);
    }
  });
}

} // namespace
} // namespace windlass::rt::testing
