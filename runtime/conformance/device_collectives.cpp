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

/// Rows of `columns` elements for `tokens` tokens of each member, and back: as if all rows were moved, but for those
/// that nobody needs.
void check_rows(transport &world, const device_group &group, std::int64_t tokens, std::int64_t columns) {
  const std::int32_t size = world.size(), me = world.rank();
  ASSERT_TRUE(group.open(world).is_ok());
  const std::unique_ptr<stream> side = make_worker_stream(1, nullptr, 0);
  const std::unique_ptr<communicator> c = make_group(world, group, *side);
  ASSERT_NE(c, nullptr);
  const std::int64_t chosen = 2, experts = 3 * size, all = size * tokens;
  index_tensor choices({all, chosen}, 0, experts);
  for (std::int64_t i = 0; i < all * chosen; ++i) // the last third of the tokens of each member chooses one expert
    choices[i] = i / chosen % tokens * 3 >= 2 * tokens ? 1 : (i * i + 5 * i) % experts;
  const detail::row_routes of = {choices.v().as<const std::int64_t>(), tokens, chosen, 3, columns, element_type::f32};
  const tensor in({tokens, columns}), whole({all, columns}),
      scratch({detail::row_scratch_elements(size, tokens, chosen, columns, 4)});
  for (std::int64_t i = 0; i < tokens * columns; ++i)
    in[i] = value_of(i, me);
  EXPECT_STATUS_OK(gather_rows(*side, *c, whole, scratch, in, choices, experts));
  EXPECT_STATUS_OK(side->synchronize());
  for (std::int64_t i = 0; i < all * columns; ++i)
    if (of.reaches(i / columns, me)) {
      ASSERT_EQ(whole[i], value_of(i % (tokens * columns), static_cast<std::int32_t>(i / (tokens * columns)))) << i;
    }
  for (std::int64_t i = 0; i < all * columns; ++i)
    whole[i] = value_of(i, me);
  EXPECT_STATUS_OK(scatter_rows(*side, *c, in, scratch, whole, choices, experts));
  EXPECT_STATUS_OK(side->synchronize());
  for (std::int64_t i = 0; i < tokens * columns; ++i) {
    const std::int64_t place = me * tokens * columns + i;
    float sum = 0;
    for (std::int32_t m = 0; m < size; ++m)
      if (of.reaches(place / columns, m))
        sum += value_of(place, m);
    ASSERT_EQ(in[i], sum) << i;
  }
  // Each way a row goes to as many members as its token reaches, and its own one counts nothing.
  std::int64_t rows = 0;
  for (std::int32_t m = 0; m < size; ++m)
    rows += m == me ? 0 : of.count(me, m) + of.count(m, me);
  collective_bytes sent;
  c->take_sent(sent);
  EXPECT_EQ(sent[collective_kind::rows], static_cast<double>(rows * columns * 4));
}

void check_row_exchanges(std::int32_t ranks, const device_group &group) {
  for (const auto &[tokens, columns] : {std::pair<std::int64_t, std::int64_t>{1, 1}, {13, 5}, {300, 34}})
    run_members(ranks, [&, t = tokens, n = columns](transport &world) { check_rows(world, group, t, n); });
}

void check_collectives(std::int32_t ranks, const device_group &group) {
  for (const std::int64_t n : {1, 17, 5000})
    run_members(ranks, [&](transport &world) { check_member(world, group, n); });
}

TEST_P(SharedDevice, Collectives) { check_collectives(GetParam(), shared_device_group()); }

TEST_P(SharedDevice, Rows) { check_row_exchanges(GetParam(), shared_device_group()); }

INSTANTIATE_TEST_SUITE_P(Ranks, SharedDevice, ::testing::Values(1, 2, 3, 4, 8));

/// Sums of two numbers are the same in any order.
TEST_P(Nccl, Collectives) {
  if (const std::string missing = missing_for_nccl(GetParam()); !missing.empty())
    GTEST_SKIP() << missing;
  check_collectives(GetParam(), nccl_group());
}

/// Sums of two numbers are the same in any order.
TEST_P(Nccl, Rows) {
  if (const std::string missing = missing_for_nccl(GetParam()); !missing.empty())
    GTEST_SKIP() << missing;
  check_row_exchanges(GetParam(), nccl_group());
}

INSTANTIATE_TEST_SUITE_P(Ranks, Nccl, ::testing::Values(1, 2));

} // namespace
} // namespace windlass::rt::testing
