// Products with what follows them: as two kernels and, where a device's library can, in one pass.
#include "testing.h"

#include "windlass/rt/scalar.h"

namespace windlass::rt::testing {
namespace {

/// Whether fused products run by the library, where there is one.
struct Epilogues : ::testing::TestWithParam<bool> {
  test_stream s;
  void SetUp() override {
    if constexpr (detail::backend_has_device) {
      const std::string device = detail::device_name(), library = detail::product_library(s);
      if (GetParam())
        detail::choose_products(s, {device.c_str(), library.c_str(), {nullptr, 0}});
    } else if (GetParam()) {
      GTEST_SKIP() << "this back end has no library that fuses";
    }
  }
};
INSTANTIATE_TEST_SUITE_P(Ways, Epilogues, ::testing::Bool(), [](const ::testing::TestParamInfo<bool> &way) {
  return way.param ? "ByTheLibrary" : "Apart";
});

/// Element [i, j] of the product of [rows, depth] and [depth, columns].
double element(const tensor &a, const tensor &b, std::int64_t depth, std::int64_t columns, std::int64_t at) {
  double sum = 0;
  for (std::int64_t k = 0; k < depth; ++k)
    sum += double(a[at / columns * depth + k]) * double(b[k * columns + at % columns]);
  return sum;
}

TEST_P(Epilogues, BiasAndGelu) {
  // A transposed weight, as models have it; rows that are two dims; a result whose columns are in a row.
  for (const std::vector<int> &order : {std::vector<int>{0, 1}, std::vector<int>{1, 0}})
    for (const std::vector<int> &result : {std::vector<int>{0, 1, 2}, std::vector<int>{2, 0, 1}}) {
      const tensor a({3, 5, 7}), b({7, 24}, order), bias({3, 5, 24}, {}, 0, {0, 1});
      const tensor out({3, 5, 24}, result), input({3, 5, 24}, result);
      std::vector<double> sums, activated;
      for (std::int64_t i = 0; i < out.elements(); ++i) {
        sums.push_back(element(a, b, 7, 24, i) + double(bias[i]));
        activated.push_back(scalar::gelu_tanh(sums.back()));
      }
      EXPECT_STATUS_OK(matmul_bias(s, out, a, b, bias, view(), 1));
      expect_near(out, sums, 2e-6);
      const tensor added({3, 5, 24}, result);
      std::vector<double> more = sums;
      for (std::size_t i = 0; i < more.size(); ++i)
        more[i] += double(added[std::int64_t(i)]);
      EXPECT_STATUS_OK(matmul_bias(s, out, a, b, bias, added, 1));
      expect_near(out, more, 2e-6);
      EXPECT_STATUS_OK(matmul_bias_gelu(s, out, view(), a, b, bias, 1));
      expect_near(out, activated, 2e-6);
      EXPECT_STATUS_OK(fill(s, out, 0));
      EXPECT_STATUS_OK(matmul_bias_gelu(s, out, input, a, b, bias, 1));
      expect_near(out, activated, 2e-6);
      expect_near(input, sums, 2e-6);
    }
}

TEST_P(Epilogues, GradientOfGelu) {
  for (const std::vector<int> &order : {std::vector<int>{0, 1}, std::vector<int>{1, 0}})
    for (const std::vector<int> &result : {std::vector<int>{0, 1, 2}, std::vector<int>{2, 0, 1}}) {
      const tensor a({3, 5, 7}), b({7, 24}, order), dx({3, 5, 24}, result), x({3, 5, 24}, result);
      std::vector<double> expected;
      for (std::int64_t i = 0; i < dx.elements(); ++i)
        expected.push_back(scalar::gelu_tanh_grad(double(x[i]), element(a, b, 7, 24, i)));
      EXPECT_STATUS_OK(matmul_gelu_grad(s, dx, a, b, x, 1));
      expect_near(dx, expected, 2e-6);
    }
}

TEST_P(Epilogues, BiasGradient) {
  for (const bool sums_b : {false, true})
    for (const std::vector<int> &result : {std::vector<int>{0, 1}, std::vector<int>{1, 0}})
      for (const bool accumulate : {false, true}) {
        const tensor a({24, 3, 5}, {1, 2, 0}), b({3, 5, 16}), out({24, 16}, result), dbias({sums_b ? 16 : 24});
        std::vector<double> products = out.values(), sums = dbias.values();
        for (std::int64_t i = 0; i < out.elements(); ++i)
          products[std::size_t(i)] = (accumulate ? products[std::size_t(i)] : 0) + element(a, b, 15, 16, i);
        for (std::int64_t i = 0; i < dbias.elements(); ++i) {
          double sum = accumulate ? sums[std::size_t(i)] : 0;
          for (std::int64_t k = 0; k < 15; ++k)
            sum += double(sums_b ? b[k * 16 + i] : a[i * 15 + k]);
          sums[std::size_t(i)] = sum;
        }
        EXPECT_STATUS_OK(matmul_bias_grad(s, out, dbias, a, b, 2, sums_b, accumulate));
        expect_near(out, products, 2e-6);
        expect_near(dbias, sums, 2e-6);
      }
}

} // namespace
} // namespace windlass::rt::testing
