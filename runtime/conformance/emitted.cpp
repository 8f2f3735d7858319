// The small functions that emitted programs call.
#include "windlass/rt/emitted.h"

#include "windlass/rt/transport.h"

#include "one_job.h"

#include <gtest/gtest.h>

#include <thread>

namespace windlass::rt {
namespace {

TEST(Emitted, OwnBlockIsNumberedByTheAxesInTheirOrder) {
  const axis axes[] = {{"a", 2}, {"b", 3}, {"c", 2}};
  program p = {};
  const stream_entry streams[] = {{stream_kind::compute, "compute"}};
  p.streams = {streams, 1};
  const one_job job({axes, 3}, p);
  float values[6 * 8] = {};
  const view dense = dense_view(reinterpret_cast<std::byte *>(values), element_type::f32, {6, 4, 2});
  // The blocks lie side by side in each row of 4.
  const view strided = strided_view(reinterpret_cast<std::byte *>(values), element_type::f32, {6, 4, 2}, {2, 12, 1});
  std::vector<std::unique_ptr<transport>> world = make_local_transports(12);
  for (std::int32_t rank = 0; rank < 12; ++rank) {
    context c;
    ASSERT_TRUE(c.create(job, *world[static_cast<std::size_t>(rank)], 1).is_ok());
    const std::int32_t a = rank / 6, b = rank / 2 % 3;
    EXPECT_EQ(c.axis_size(1), 3);
    EXPECT_EQ(own_block(c, dense, {}).as<float>(), values);
    EXPECT_EQ(own_block(c, dense, {1}).as<float>(), values + b * 8);
    EXPECT_EQ(own_block(c, dense, {0, 1}).as<float>(), values + (a * 3 + b) * 8);
    EXPECT_EQ(own_block(c, dense, {1, 0}).as<float>(), values + (b * 2 + a) * 8);
    const view own = own_block(c, strided, {1, 0});
    EXPECT_EQ(own.as<float>(), values + (b * 2 + a) * 2);
    EXPECT_EQ(own.rank, 2);
    EXPECT_EQ(own.sizes[0], 4);
    EXPECT_EQ(own.sizes[1], 2);
    EXPECT_EQ(own.strides[0], 12);
    EXPECT_EQ(own.strides[1], 1);
  }
}

/// Two positions of one rank each, an arena of the device and one of the host, and a stream for each direction.
TEST(Emitted, ValuesGoBetweenArenasAndPositions) {
  const arena_entry arenas[] = {{memory_kind::device, 4096, "device"}, {memory_kind::pinned, 4096, "host"}};
  const stream_entry streams[] = {{stream_kind::compute, "compute"},
                                  {stream_kind::h2d, "to the device"},
                                  {stream_kind::d2h, "to the host"},
                                  {stream_kind::peer, "messages"}};
  const peer_entry peers[] = {{1, 3}, {0, 3}};
  program programs[2];
  for (std::int32_t i : {0, 1}) {
    programs[i].arenas = {arenas, 2};
    programs[i].streams = {streams, 4};
    programs[i].events = 3;
    programs[i].peers = {peers + i, 1};
  }
  const position_entry positions[] = {{{}, 0, 1, &programs[0]}, {{}, 1, 1, &programs[1]}};
  job j;
  j.positions = {positions, 2};
  std::vector<std::unique_ptr<transport>> world = make_local_transports(2);
  const auto run = [&](std::int32_t rank) -> status {
    context c;
    WINDLASS_TRY(c.create(j, *world[static_cast<std::size_t>(rank)], 1));
    const view device = view_at(c, {0, 256}, element_type::f32, {100}),
               host = view_at(c, {1, 512}, element_type::f32, {100}),
               other = view_at(c, {0, 1024}, element_type::f32, {100});
    const std::int32_t peer = 1 - peer_of(c, 0).index();
    if (rank == 0) {
      for (std::int64_t i = 0; i < 100; ++i)
        host.as<float>()[i] = static_cast<float>(i) + 0.5f;
      WINDLASS_TRY(copy(stream_of(c, 1), device, host));
      WINDLASS_TRY(record_event(stream_of(c, 1), event_of(c, 0)));
      WINDLASS_TRY(wait_event(stream_of(c, 3), event_of(c, 0)));
      WINDLASS_TRY(send(stream_of(c, 3), peer_of(c, 0), device, peer));
      return c.synchronize();
    }
    WINDLASS_TRY(receive(stream_of(c, 3), peer_of(c, 0), device, peer));
    WINDLASS_TRY(record_event(stream_of(c, 3), event_of(c, 0)));
    WINDLASS_TRY(wait_event(stream_of(c, 0), event_of(c, 0)));
    WINDLASS_TRY(copy(stream_of(c, 0), other, device));
    WINDLASS_TRY(record_event(stream_of(c, 0), event_of(c, 1)));
    WINDLASS_TRY(wait_event(stream_of(c, 2), event_of(c, 1)));
    WINDLASS_TRY(copy(stream_of(c, 2), host, other));
    WINDLASS_TRY(c.synchronize());
    for (std::int64_t i = 0; i < 100 && detail::backend_moves_data; ++i)
      EXPECT_EQ(host.as<float>()[i], static_cast<float>(i) + 0.5f) << i;
    return {};
  };
  status first;
  std::thread beside([&] { first = run(0); });
  const status second = run(1);
  beside.join();
  EXPECT_TRUE(first.is_ok()) << first.message();
  EXPECT_TRUE(second.is_ok()) << second.message();
}

TEST(Emitted, BuffersAreViewsAtTheirPlaces) {
  const arena_entry arenas[] = {{memory_kind::device, 4096, "device"}, {memory_kind::pinned, 4096, "host"}};
  const stream_entry streams[] = {{stream_kind::compute, "compute"}};
  program p = {};
  p.arenas = {arenas, 2};
  p.streams = {streams, 1};
  const one_job job({}, p);
  std::vector<std::unique_ptr<transport>> world = make_local_transports(1);
  context c;
  ASSERT_TRUE(c.create(job, *world[0], 1).is_ok());
  constexpr buffer dense({0, 64}, element_type::f32, {2, 3}), strided({1, 64}, element_type::bf16, {2, 3}, {0, 2});
  constexpr row_buffer moving({1, 1}, element_type::i64, {2});
  const std::int64_t rows[][2] = {{0, 128}, {0, 256}};

  const view first = buffer_views(c)(dense), second = buffer_views(c)(strided);
  EXPECT_EQ(first.data, c.at({0, 64}));
  EXPECT_EQ(first.type, element_type::f32);
  EXPECT_EQ(first.rank, 2);
  EXPECT_EQ(first.sizes[1], 3);
  EXPECT_EQ(first.strides[0], 3);
  EXPECT_EQ(second.data, c.at({1, 64}));
  EXPECT_EQ(second.strides[0], 0);
  EXPECT_EQ(second.strides[1], 2);
  for (row r : rows) {
    EXPECT_EQ(buffer_views(c, r)(moving).data, c.at({1, r[1]}));
    EXPECT_EQ(buffer_views(c, r)(dense).data, c.at({0, 64}));
  }

  constexpr parameter_places fixed[] = {{4, {0, 0}, {1, 64}, {0, 128}, {0, 192}, {-1, 0}},
                                        {8, {0, 256}, {0, 320}, {0, 384}, {1, 448}, {0, 512}}};
  constexpr parameter_rows in_row[] = {{4, {0, 0}, {1, 1}, {0, 0}, {0, 1}, {1, 0}}};
  const updated_parameters two = parameters_at(buffer_views(c), element_type::bf16, element_type::bf16, fixed);
  ASSERT_EQ(two.count, 2);
  EXPECT_EQ(two.rounded, element_type::bf16);
  EXPECT_EQ(two.gradients, element_type::bf16);
  EXPECT_EQ(two.of[0].elements, 4);
  EXPECT_EQ(reinterpret_cast<const std::byte *>(two.of[0].exp_avg), c.at({1, 64}));
  EXPECT_EQ(two.of[0].rounded, nullptr);
  EXPECT_EQ(two.of[1].gradient, c.at({1, 448}));
  EXPECT_EQ(two.of[1].rounded, c.at({0, 512}));
  const updated_parameters one = parameters_at(buffer_views(c, rows[1]), element_type::f32, element_type::f32, in_row);
  ASSERT_EQ(one.count, 1);
  EXPECT_EQ(reinterpret_cast<const std::byte *>(one.of[0].exp_avg), c.at({1, 256}));
  EXPECT_EQ(one.of[0].rounded, c.at({1, 0}));

  constexpr gradient_places gradients[] = {{4, {0, 64}}, {8, {1, 448}}};
  constexpr gradient_rows gradients_in_row[] = {{4, {1, 1}}};
  const squared_gradients both = gradients_at(buffer_views(c), element_type::bf16, gradients);
  ASSERT_EQ(both.count, 2);
  EXPECT_EQ(both.of[1].elements, 8);
  EXPECT_EQ(both.type, element_type::bf16);
  EXPECT_EQ(both.of[0].data, c.at({0, 64}));
  EXPECT_EQ(both.of[1].data, c.at({1, 448}));
  const squared_gradients of_row = gradients_at(buffer_views(c, rows[1]), element_type::f32, gradients_in_row);
  ASSERT_EQ(of_row.count, 1);
  EXPECT_EQ(of_row.of[0].data, c.at({1, 256}));
}

} // namespace
} // namespace windlass::rt
