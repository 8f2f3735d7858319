// Collectives and events of ranks that are threads: they share one device, or have one each and use NCCL.
#include "device_groups.h"
#include "testing.h"

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

void check_member(transport &world, const device_group &group, std::int64_t n) {
  const std::int32_t size = world.size(), me = world.rank();
  ASSERT_TRUE(group.open(world).is_ok());
  const std::unique_ptr<stream> compute = make_worker_stream(1, nullptr, 0), side = make_worker_stream(1, nullptr, 0);
  const std::unique_ptr<communicator> c = make_group(world, group, *side);
  ASSERT_NE(c, nullptr);
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
  // Several at once bring the same.
  const std::int64_t odd = n / 3 + 1;
  const tensor other = filled(odd, me), all_others({odd * size}), gathered({n * size});
  const auto pair = [](const tensor &out, const tensor &in, std::int64_t elements) {
    return collective_pair{out.v().data, in.v().data, elements, element_type::f32};
  };
  run([&] { return all_gather_list(*side, *c, {2, {pair(gathered, x, n), pair(all_others, other, odd)}}); });
  for (std::int64_t i = 0; i < n * size; ++i)
    ASSERT_EQ(gathered[i], all[i]);
  for (std::int64_t i = 0; i < odd * size; ++i)
    ASSERT_EQ(all_others[i], value_of(i % odd, static_cast<std::int32_t>(i / odd)));
  const tensor part_again({n}), other_part({odd}), other_whole = filled(odd * size, me), other_alone({odd});
  run([&] { return reduce_scatter(*side, *c, other_alone, other_whole); });
  run([&] {
    return reduce_scatter_list(*side, *c, {2, {pair(other_part, other_whole, odd), pair(part_again, whole, n)}});
  });
  for (std::int64_t i = 0; i < n; ++i)
    ASSERT_EQ(part_again[i], part[i]);
  for (std::int64_t i = 0; i < odd; ++i)
    ASSERT_EQ(other_part[i], other_alone[i]);

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
  for (const std::int64_t n : {1, 17, 5000})
    run_members(ranks, [&](transport &world) { check_member(world, group, n); });
}

TEST_P(SharedDevice, Collectives) { check_collectives(GetParam(), shared_device_group()); }

INSTANTIATE_TEST_SUITE_P(Ranks, SharedDevice, ::testing::Values(1, 2, 3, 4, 8));

/// Sums of two numbers are the same in any order.
TEST_P(Nccl, Collectives) {
  if (const std::string missing = missing_for_nccl(GetParam()); !missing.empty())
    GTEST_SKIP() << missing;
  check_collectives(GetParam(), nccl_group());
}

INSTANTIATE_TEST_SUITE_P(Ranks, Nccl, ::testing::Values(1, 2));

} // namespace
} // namespace windlass::rt::testing
