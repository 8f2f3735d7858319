#include "testing.h"

namespace windlass::rt::testing {
namespace {

void check_rotary(const std::vector<int> &order, const std::vector<int> &table_order, std::int32_t threads,
                  std::int64_t depth = 26) {
  test_stream s(threads);
  const std::int64_t tokens = 31, half = depth / 2, rows = 3 * 5 * tokens;
  const tensor x({3, 5, tokens, depth}, order), y({3, 5, tokens, depth}, {0, 2, 1, 3}),
      cosine({tokens, depth}, table_order), sine({tokens, depth}, table_order);
  std::vector<double> forward, transposed;
  for (std::int64_t r = 0; r < rows; ++r)
    for (std::int64_t i = 0; i < depth; ++i) {
      const std::int64_t other = i < half ? i + half : i - half, t = r % tokens * depth;
      const double same = double(x[r * depth + i]) * double(cosine[t + i]), across = double(x[r * depth + other]);
      const double sign = i < half ? 1 : -1;
      forward.push_back(same - sign * across * double(sine[t + i]));
      transposed.push_back(same + sign * across * double(sine[t + other]));
    }
  EXPECT_STATUS_OK(rotary(s, y, x, cosine, sine, false));
  expect_near(y, forward, 1e-6);
  EXPECT_STATUS_OK(rotary(s, y, x, cosine, sine, true));
  expect_near(y, transposed, 1e-6);
}

TEST(Rotary, Dense) {
  check_rotary({}, {}, 1);
  check_rotary({}, {}, 3);
}
TEST(Rotary, DepthsOfPacks) {
  for (const std::int64_t depth : {16, 24, 128, 1040}) {
    check_rotary({}, {}, 2, depth);
    check_rotary({0, 2, 1, 3}, {}, 2, depth);
  }
}
TEST(Rotary, Permuted) {
  check_rotary({0, 2, 1, 3}, {}, 3);
  check_rotary({3, 1, 2, 0}, {1, 0}, 2);
}

TEST(Rotary, RefusesTablesThatDisagree) {
  test_stream s;
  const tensor x({2, 4, 8}), table({4, 8}), other({4, 6}), odd({2, 4, 7}), odd_table({4, 7});
  EXPECT_EQ(rotary(s, x, x, table, other, false).code(), status_code::internal);
  EXPECT_EQ(rotary(s, odd, odd, odd_table, odd_table, false).code(), status_code::internal);
}

} // namespace
} // namespace windlass::rt::testing
