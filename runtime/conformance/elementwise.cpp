#include "testing.h"

#include "windlass/rt/detail/half.h"
#include "windlass/rt/map.h"

#include <limits>

namespace windlass::rt::testing {
namespace {

struct multiply_add {
  static constexpr const char *name = "multiply_add";
  using outputs = type_list<float>;
  using inputs = type_list<float, float, float>;
  WINDLASS_FN static void apply(float &r0, float a0, float a1, float a2) { r0 = a0 * a1 + a2; }
};

struct gated {
  static constexpr const char *name = "gated";
  using outputs = type_list<float, bool>;
  using inputs = type_list<float, bool, std::int64_t>;
  WINDLASS_FN static void apply(float &r0, bool &r1, float a0, bool a1, std::int64_t a2) {
    r0 = windlass::scalar::select(a1, windlass::scalar::gelu_tanh(a0), static_cast<float>(a2));
    r1 = windlass::scalar::less(r0, 0.0f);
  }
};

struct scaled {
  static constexpr const char *name = "scaled";
  using outputs = type_list<float>;
  using inputs = type_list<float>;
  float factor;
  WINDLASS_FN void apply(float &r0, float a0) const { r0 = factor * a0; }
};

void check_multiply_add(const sizes &shape, const std::vector<std::vector<int>> &orders,
                        const std::vector<std::vector<int>> &repeats, std::int64_t gap, std::int32_t threads) {
  test_stream s(threads);
  const tensor out(shape, orders[0], gap), a(shape, orders[1], gap, repeats[0]), b(shape, orders[2], gap, repeats[1]),
      c(shape, orders[3], gap, repeats[2]);
  std::vector<double> expected;
  for (std::int64_t i = 0; i < out.elements(); ++i)
    expected.push_back(double(a[i]) * double(b[i]) + double(c[i]));
  EXPECT_STATUS_OK(map(s, multiply_add(), {out}, {a, b, c}));
  expect_near(out, expected, 1e-6);
}

TEST(Map, AnyStrides) {
  for (const std::int32_t threads : {1, 3}) {
    check_multiply_add({}, {{}, {}, {}, {}}, {{}, {}, {}}, 0, threads);
    check_multiply_add({70001}, {{}, {}, {}, {}}, {{}, {0}, {}}, 0, threads);
    check_multiply_add({37, 701}, {{}, {}, {}, {}}, {{}, {0}, {1}}, 0, threads);
    check_multiply_add({37, 701}, {{}, {1, 0}, {}, {}}, {{}, {0, 1}, {}}, 3, threads);
    check_multiply_add({37, 701}, {{1, 0}, {}, {1, 0}, {}}, {{}, {0}, {1}}, 3, threads);
    check_multiply_add({3, 5, 7, 300}, {{}, {2, 0, 3, 1}, {}, {3, 2, 1, 0}}, {{}, {0, 2}, {1}}, 1, threads);
    check_multiply_add({4, 1, 1, 9}, {{}, {}, {}, {}}, {{}, {1}, {2}}, 0, threads);
    check_multiply_add({4, 0, 9}, {{}, {}, {}, {}}, {{}, {}, {}}, 0, threads);
  }
}

TEST(Map, SeveralResultsOfSeveralTypes) {
  for (const std::int64_t width : {5, 1000}) {
    test_stream s;
    const tensor x({9, width}), r({9, width}, {1, 0});
    basic_tensor<bool> chosen({9, width}, element_type::boolean), negative({9, width}, element_type::boolean, {1, 0});
    const index_tensor other({9, width}, -5, 5, {1, 0});
    chosen.fill_with([](std::int64_t i) { return i % 3 == 0; });
    EXPECT_STATUS_OK(map(s, gated(), {r, negative}, {x, chosen, other}));
    for (std::int64_t i = 0; i < r.elements(); ++i) {
      const float expected = chosen[i] ? windlass::scalar::gelu_tanh(x[i]) : static_cast<float>(other[i]);
      ASSERT_NEAR(r[i], expected, 1e-6);
      ASSERT_EQ(negative[i], r[i] < 0);
    }
  }
}

TEST(Map, InPlaceWithAConstant) {
  test_stream s;
  const tensor x({33, 501}, {1, 0}, 2);
  std::vector<double> expected = x.values();
  for (double &e : expected)
    e *= 3;
  EXPECT_STATUS_OK(map(s, scaled{3.0f}, {x}, {x}));
  expect_near(x, expected, 1e-7);
}

TEST(Map, TreatsDenormalsAsZeroOnEveryThread) {
  test_stream s(3);
  const tensor x({70001});
  EXPECT_STATUS_OK(fill(s, x, 1e-30));
  EXPECT_STATUS_OK(map(s, scaled{1e-10f}, {x}, {x}));
  for (std::int64_t i = 0; i < x.elements(); ++i)
    ASSERT_EQ(x[i], 0.0f) << i;
}

TEST(Map, OnAWorker) {
  const std::unique_ptr<stream> s = make_worker_stream(1, nullptr, 0);
  const tensor x({1000});
  std::vector<double> expected = x.values();
  for (double &e : expected)
    e *= 1024;
  for (int i = 0; i < 10; ++i)
    EXPECT_STATUS_OK(map(*s, scaled{2.0f}, {x}, {x}));
  EXPECT_STATUS_OK(s->synchronize());
  expect_near(x, expected, 0);
}

TEST(Map, RefusesOperandsThatDoNotFit) {
  test_stream s;
  const tensor x({4}), y({5});
  const index_tensor i({4}, 0, 1);
  EXPECT_EQ(map(s, scaled{1}, {x}, {y}).code(), status_code::internal);
  EXPECT_EQ(map(s, scaled{1}, {x}, {i}).code(), status_code::internal);
  EXPECT_EQ(map(s, scaled{1}, {x}, {x, x}).code(), status_code::internal);
}

TEST(Copy, AnyStrides) {
  for (const std::int32_t threads : {1, 3}) {
    test_stream s(threads);
    const tensor in({13, 17, 90}, {2, 0, 1}, 1), out({13, 17, 90}, {1, 0, 2}), dense({13, 17, 90});
    EXPECT_STATUS_OK(copy(s, out, in));
    expect_near(out, in.values(), 0);
    EXPECT_STATUS_OK(copy(s, dense, out));
    expect_near(dense, in.values(), 0);
    const tensor again({13, 17, 90});
    EXPECT_STATUS_OK(copy(s, again, dense));
    expect_near(again, in.values(), 0);
  }
}

TEST(Copy, ConvertsTypes) {
  test_stream s;
  tensor x({4}), back({4});
  x[0] = -2.7f;
  x[1] = 0.0f;
  x[2] = 3.9f;
  x[3] = 100.0f;
  const index_tensor i({4}, 0, 1);
  EXPECT_STATUS_OK(copy(s, i, x));
  EXPECT_EQ(i[0], -2);
  EXPECT_EQ(i[2], 3);
  basic_tensor<bool> b({4}, element_type::boolean);
  EXPECT_STATUS_OK(copy(s, b, x));
  EXPECT_TRUE(b[0] && !b[1] && b[2] && b[3]);
  EXPECT_STATUS_OK(copy(s, back, b));
  EXPECT_EQ(back[0], 1.0f);
  EXPECT_EQ(back[1], 0.0f);
  basic_tensor<double> d({4}, element_type::f64);
  EXPECT_STATUS_OK(copy(s, d, x));
  EXPECT_EQ(d[2], double(3.9f));
  basic_tensor<std::uint16_t> h({4}, element_type::bf16);
  EXPECT_STATUS_OK(copy(s, h, x));
  EXPECT_STATUS_OK(copy(s, back, h));
  EXPECT_NEAR(back[2], 3.9f, 3.9f / 256);
}

TEST(Copy, HalfTypesRoundToNearestEven) {
  for (std::uint32_t bits = 0; bits < 0x10000; ++bits) { // every value comes back
    detail::f16 h;
    h.bits = static_cast<std::uint16_t>(bits);
    const float x = static_cast<float>(h);
    if (!std::isnan(x)) {
      ASSERT_EQ(detail::f16(x).bits, h.bits) << x;
    }
    detail::bf16 b;
    b.bits = static_cast<std::uint16_t>(bits);
    if (const float y = static_cast<float>(b); !std::isnan(y)) {
      ASSERT_EQ(detail::bf16(y).bits, b.bits) << y;
    }
  }
  EXPECT_EQ(static_cast<float>(detail::f16(1.0f + 1.0f / 2048)), 1.0f);
  EXPECT_EQ(static_cast<float>(detail::f16(1.0f + 3.0f / 2048)), 1.0f + 2.0f / 1024);
  EXPECT_EQ(static_cast<float>(detail::f16(65519.0f)), 65504.0f);
  EXPECT_TRUE(std::isinf(static_cast<float>(detail::f16(65520.0f))));
  EXPECT_EQ(static_cast<float>(detail::bf16(1.0f + 1.0f / 256)), 1.0f);
  EXPECT_TRUE(std::isnan(static_cast<float>(detail::bf16(std::numeric_limits<float>::quiet_NaN()))));
}

TEST(Fill, EveryType) {
  test_stream s;
  const tensor x({5, 7}, {1, 0}, 3);
  EXPECT_STATUS_OK(fill(s, x, -1.5));
  expect_near(x, std::vector<double>(35, -1.5), 0);
  EXPECT_STATUS_OK(fill(s, x, -std::numeric_limits<double>::infinity()));
  EXPECT_EQ(x[34], -std::numeric_limits<float>::infinity());
  const index_tensor i({5}, 0, 1);
  EXPECT_STATUS_OK(fill(s, i, 7));
  EXPECT_EQ(i[4], 7);
  basic_tensor<bool> b({5}, element_type::boolean);
  EXPECT_STATUS_OK(fill(s, b, 1));
  EXPECT_TRUE(b[4]);
}

TEST(Constant, TheElementsOfATable) {
  test_stream s;
  const tensor x({2, 3});
  static constexpr std::uint32_t reals[] = {0x3f800000, 0x40000000, 0xc0400000, 0, 0x80000000, 0xff800000};
  EXPECT_STATUS_OK(constant(s, x, reals));
  EXPECT_EQ(x[1], 2);
  EXPECT_EQ(x[2], -3);
  EXPECT_EQ(x[5], -std::numeric_limits<float>::infinity());
  const basic_tensor<bool> b({3}, element_type::boolean);
  static constexpr std::uint8_t bits[] = {1, 0, 1};
  EXPECT_STATUS_OK(constant(s, b, bits));
  EXPECT_TRUE(b[0] && !b[1] && b[2]);
}

TEST(Iota, AlongEachDim) {
  for (int dim = 0; dim < 2; ++dim) {
    test_stream s;
    const index_tensor i({3, 4}, 0, 1, {1, 0});
    EXPECT_STATUS_OK(iota(s, i, dim, 10, -2));
    for (std::int64_t k = 0; k < 12; ++k)
      EXPECT_EQ(i[k], 10 - 2 * (dim == 0 ? k / 4 : k % 4));
  }
}

} // namespace
} // namespace windlass::rt::testing
