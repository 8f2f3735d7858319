// The small functions that emitted programs call.
#include "windlass/rt/emitted.h"

#include "windlass/rt/transport.h"

#include "one_job.h"

#include <gtest/gtest.h>

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

} // namespace
} // namespace windlass::rt
