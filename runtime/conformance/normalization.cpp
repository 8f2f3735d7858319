#include "testing.h"

#include <cmath>
#include <cstring>
#include <limits>

namespace windlass::rt::testing {
namespace {

const std::vector<int> by_rows = {}, by_columns = {1, 0};

/// Columns and elements between rows: of any number, whole packs of 8, whole packs and a rest; the last ones are more
/// than what a block of a device keeps in registers.
const std::pair<std::int64_t, std::int64_t> widths[] = {{67, 0}, {72, 0}, {83, 5}, {8203, 5}};

void check_softmax(const std::vector<int> &order, std::int32_t threads, std::int64_t n, std::int64_t gap) {
  constexpr std::int64_t rows = 37;
  test_stream s(threads);
  const tensor x({rows, n}, order, gap), y({rows, n}, {}, gap), dy({rows, n}, {}, gap), dx({rows, n}, order, gap);
  std::vector<double> e_y, e_dx;
  for (std::int64_t r = 0; r < rows; ++r) {
    double sum = 0, dot = 0;
    for (std::int64_t i = 0; i < n; ++i)
      sum += std::exp(double(x[r * n + i]));
    for (std::int64_t i = 0; i < n; ++i) {
      e_y.push_back(std::exp(double(x[r * n + i])) / sum);
      dot += e_y.back() * double(dy[r * n + i]);
    }
    for (std::int64_t i = 0; i < n; ++i)
      e_dx.push_back(e_y[static_cast<std::size_t>(r * n + i)] * (double(dy[r * n + i]) - dot));
  }
  EXPECT_STATUS_OK(softmax(s, y, x));
  expect_near(y, e_y, 1e-6);
  EXPECT_STATUS_OK(softmax_grad(s, dx, y, dy));
  expect_near(dx, e_dx, 2e-6);
  EXPECT_STATUS_OK(softmax(s, x, x));
  expect_near(x, e_y, 1e-6);
  EXPECT_STATUS_OK(softmax_grad(s, dy, y, dy));
  expect_near(dy, e_dx, 2e-6);
}

TEST(Softmax, RowsOfAnyStride) {
  for (const std::vector<int> &order : {by_rows, by_columns})
    for (const std::int32_t threads : {1, 3})
      check_softmax(order, threads, 101, 0);
}
TEST(Softmax, RowsOfAnyWidth) {
  for (const auto &[n, gap] : widths)
    check_softmax(by_rows, 2, n, gap);
}

TEST(Softmax, LargeValuesAndNaN) {
  test_stream s;
  tensor x({2, 3}), y({2, 3});
  x[0] = 1e30f;
  x[1] = x[2] = -1e30f;
  x[4] = std::numeric_limits<float>::quiet_NaN();
  EXPECT_STATUS_OK(softmax(s, y, x));
  EXPECT_EQ(y[0], 1.0f);
  EXPECT_EQ(y[1], 0.0f);
  EXPECT_TRUE(std::isnan(y[3]) && std::isnan(y[4]));
}

void check_layer_norm(const std::vector<int> &order, bool has_bias, std::int32_t threads, std::int64_t n = 67,
                      std::int64_t gap = 0) {
  test_stream s(threads);
  const std::int64_t rows = 3 * 29;
  const tensor x({3, 29, n}, order, gap), y({3, 29, n}, order, gap), dy({3, 29, n}, {}, gap),
      dx({3, 29, n}, order, gap), mean({3, 29}), rstd({3, 29}, {1, 0}), scale({n}), bias({n}), dscale({n}), dbias({n});
  std::vector<double> e_y, e_mean, e_rstd, e_dx, e_dscale(static_cast<std::size_t>(n)),
      e_dbias(static_cast<std::size_t>(n));
  const double epsilon = 1e-3;
  for (std::int64_t r = 0; r < rows; ++r) {
    double sum = 0, squares = 0, g_sum = 0, g_dot = 0;
    for (std::int64_t i = 0; i < n; ++i)
      sum += double(x[r * n + i]);
    const double m = sum / double(n);
    for (std::int64_t i = 0; i < n; ++i)
      squares += (double(x[r * n + i]) - m) * (double(x[r * n + i]) - m);
    const double rs = 1 / std::sqrt(squares / double(n) + epsilon);
    e_mean.push_back(m);
    e_rstd.push_back(rs);
    for (std::int64_t i = 0; i < n; ++i) {
      const double normal = (double(x[r * n + i]) - m) * rs, g = double(dy[r * n + i]) * double(scale[i]);
      e_y.push_back(normal * double(scale[i]) + (has_bias ? double(bias[i]) : 0.0));
      g_sum += g / double(n);
      g_dot += g * normal / double(n);
      e_dscale[static_cast<std::size_t>(i)] += double(dy[r * n + i]) * normal;
      e_dbias[static_cast<std::size_t>(i)] += double(dy[r * n + i]);
    }
    for (std::int64_t i = 0; i < n; ++i) {
      const double normal = (double(x[r * n + i]) - m) * rs, g = double(dy[r * n + i]) * double(scale[i]);
      e_dx.push_back(rs * (g - g_sum - normal * g_dot));
    }
  }
  EXPECT_STATUS_OK(layer_norm(s, y, mean, rstd, x, scale, has_bias ? bias.v() : view(), epsilon));
  expect_near(y, e_y, 2e-6);
  expect_near(mean, e_mean, 2e-6);
  expect_near(rstd, e_rstd, 2e-6);
  EXPECT_STATUS_OK(layer_norm_grad(s, dx, dscale, has_bias ? dbias.v() : view(), dy, x, scale, mean, rstd, {}, false));
  expect_near(dx, e_dx, 2e-6);
  expect_near(dscale, e_dscale, 2e-6);
  if (has_bias)
    expect_near(dbias, e_dbias, 2e-6);
}

TEST(LayerNorm, Dense) {
  check_layer_norm({}, true, 1);
  check_layer_norm({}, false, 3);
}
TEST(LayerNorm, Permuted) {
  check_layer_norm({1, 0, 2}, true, 3);
  check_layer_norm({2, 1, 0}, true, 2);
}
TEST(LayerNorm, RowsOfAnyWidth) {
  for (const auto &[n, gap] : widths)
    for (const bool has_bias : {false, true})
      check_layer_norm({}, has_bias, 2, n, gap);
}

TEST(LayerNorm, RefusesSizesThatDisagree) {
  test_stream s;
  const tensor x({4, 8}), mean({4}), scale({9});
  EXPECT_EQ(layer_norm(s, x, mean, mean, x, scale, view(), 1e-5).code(), status_code::internal);
}

void check_rms_norm(const std::vector<int> &order, std::int32_t threads, std::int64_t n = 67, std::int64_t gap = 0) {
  test_stream s(threads);
  const std::int64_t rows = 3 * 29;
  const tensor x({3, 29, n}, order, gap), y({3, 29, n}, order, gap), dy({3, 29, n}, {}, gap),
      dx({3, 29, n}, order, gap), rstd({3, 29}, {1, 0}), scale({n}), dscale({n});
  std::vector<double> e_y, e_rstd, e_dx, e_dscale(static_cast<std::size_t>(n));
  const double epsilon = 1e-3;
  for (std::int64_t r = 0; r < rows; ++r) {
    double squares = 0, dot = 0;
    for (std::int64_t i = 0; i < n; ++i)
      squares += double(x[r * n + i]) * double(x[r * n + i]);
    const double rs = 1 / std::sqrt(squares / double(n) + epsilon);
    e_rstd.push_back(rs);
    for (std::int64_t i = 0; i < n; ++i) {
      const double normal = double(x[r * n + i]) * rs;
      e_y.push_back(normal * double(scale[i]));
      dot += double(dy[r * n + i]) * double(scale[i]) * normal / double(n);
      e_dscale[static_cast<std::size_t>(i)] += double(dy[r * n + i]) * normal;
    }
    for (std::int64_t i = 0; i < n; ++i)
      e_dx.push_back(rs * (double(dy[r * n + i]) * double(scale[i]) - double(x[r * n + i]) * rs * dot));
  }
  EXPECT_STATUS_OK(rms_norm(s, y, rstd, x, scale, epsilon));
  expect_near(y, e_y, 2e-6);
  expect_near(rstd, e_rstd, 2e-6);
  EXPECT_STATUS_OK(rms_norm_grad(s, dx, dscale, dy, x, scale, rstd, {}, false));
  expect_near(dx, e_dx, 2e-6);
  expect_near(dscale, e_dscale, 2e-6);
}

TEST(RmsNorm, Dense) {
  check_rms_norm({}, 1);
  check_rms_norm({}, 3);
}
TEST(RmsNorm, Permuted) {
  check_rms_norm({1, 0, 2}, 3);
  check_rms_norm({2, 1, 0}, 2);
}
TEST(RmsNorm, RowsOfAnyWidth) {
  for (const auto &[n, gap] : widths)
    check_rms_norm({}, 2, n, gap);
}

TEST(RmsNorm, RefusesSizesThatDisagree) {
  test_stream s;
  const tensor x({4, 8}), rstd({4}), scale({9});
  EXPECT_EQ(rms_norm(s, x, rstd, x, scale, 1e-5).code(), status_code::internal);
}

void expect_same_bits(const tensor &a, const tensor &b) {
  for (std::int64_t i = 0; i < a.elements(); ++i) {
    const float x = a[i], y = b[i];
    ASSERT_EQ(std::memcmp(&x, &y, sizeof x), 0) << "element " << i << " is " << x << " and " << y;
  }
}

/// The command that does both has the bits of the two, which are given.
void check_with_grad(stream &s, const tensor &logits, const tensor &dsum, const index_tensor &labels,
                     std::int64_t ignore_index, const tensor &sum, const tensor &dlogits) {
  const tensor own_sum({});
  EXPECT_STATUS_OK(softmax_cross_entropy_with_grad(s, own_sum, logits, dsum, labels, ignore_index));
  expect_same_bits(own_sum, sum);
  expect_same_bits(logits, dlogits);
}

void check_cross_entropy(const std::vector<int> &order, bool in_place, std::int32_t threads, std::int64_t n = 83,
                         std::int64_t gap = 0) {
  test_stream s(threads);
  const std::int64_t rows = 6 * 35;
  const tensor logits({6, 35, n}, order, gap), other({6, 35, n}, {}, gap), lse({6, 35}), sum({}), count({}), dsum({}),
      copy({6, 35, n}, order, gap), counted({});
  index_tensor labels({6, 35}, 0, n, {1, 0});
  labels[3] = labels[100] = -100;
  double e_sum = 0;
  std::vector<double> e_lse, e_d;
  for (std::int64_t r = 0; r < rows; ++r) {
    double total = 0;
    for (std::int64_t i = 0; i < n; ++i)
      total += std::exp(double(logits[r * n + i]));
    e_lse.push_back(std::log(total));
    if (labels[r] != -100)
      e_sum += e_lse.back() - double(logits[r * n + labels[r]]);
    for (std::int64_t i = 0; i < n; ++i)
      e_d.push_back(labels[r] == -100
                        ? 0.0
                        : double(dsum[0]) * (std::exp(double(logits[r * n + i])) / total - (i == labels[r] ? 1 : 0)));
  }
  EXPECT_STATUS_OK(softmax_cross_entropy(s, sum, count, lse, logits, labels, -100));
  EXPECT_NEAR(double(sum[0]), e_sum, 1e-6 * e_sum);
  EXPECT_EQ(count[0], float(rows - 2));
  expect_near(lse, e_lse, 1e-6);
  EXPECT_STATUS_OK(count_labels(s, counted, labels, -100));
  EXPECT_EQ(counted[0], count[0]);
  for (std::int64_t i = 0; i < logits.elements(); ++i)
    copy[i] = logits[i];
  const tensor &d = in_place ? logits : other;
  EXPECT_STATUS_OK(softmax_cross_entropy_grad(s, d, dsum, logits, labels, lse, -100));
  expect_near(d, e_d, 1e-6);
  check_with_grad(s, copy, dsum, labels, -100, sum, d);
}

TEST(CrossEntropy, Dense) {
  check_cross_entropy({}, false, 1);
  check_cross_entropy({}, true, 3);
}
TEST(CrossEntropy, Permuted) { check_cross_entropy({2, 0, 1}, false, 2); }
TEST(CrossEntropy, RowsOfAnyWidth) {
  for (const auto &[n, gap] : widths)
    for (const bool in_place : {false, true})
      check_cross_entropy({}, in_place, 2, n, gap);
}

TEST(CrossEntropy, AllRowsIgnored) {
  test_stream s;
  const tensor logits({4, 5}), lse({4}), sum({}), count({}), dsum({}), counted({});
  index_tensor labels({4}, 0, 5);
  labels.fill_with([](std::int64_t) { return -1; });
  tensor zeros({4, 5});
  zeros.fill_with([](std::int64_t) { return 0.0f; });
  EXPECT_STATUS_OK(softmax_cross_entropy(s, sum, count, lse, logits, labels, -1));
  EXPECT_EQ(sum[0], 0.0f);
  EXPECT_EQ(count[0], 0.0f);
  check_with_grad(s, logits, dsum, labels, -1, sum, zeros);
  EXPECT_STATUS_OK(count_labels(s, counted, labels, -1));
  EXPECT_EQ(counted[0], 0.0f);
}

TEST(CrossEntropy, FarAndInfiniteLogits) {
  constexpr float infinity = std::numeric_limits<float>::infinity();
  float marked = 0; // a NaN whose payload is not zero
  const std::uint32_t bits = 0x7fc00155;
  std::memcpy(&marked, &bits, sizeof marked);
  test_stream s;
  const tensor logits({7, 40}), lse({7}), sum({}), count({}), dsum({}), dlogits({7, 40});
  index_tensor labels({7}, 0, 40);
  labels.fill_with([](std::int64_t) { return 0; });
  const float others[] = {-80, -87.5f, -500, -infinity, infinity, marked, 3e38f};
  for (std::int64_t row = 0; row < 7; ++row)
    for (std::int64_t i = 0; i < 40; ++i)
      logits[row * 40 + i] = i == 39 ? others[row] : 1.0f;
  for (std::int64_t i = 0; i < 40; ++i)
    logits[3 * 40 + i] = -infinity;
  EXPECT_STATUS_OK(softmax_cross_entropy(s, sum, count, lse, logits, labels, -100));
  for (const std::int64_t row : {0, 1, 2})
    EXPECT_NEAR(lse[row], 1 + std::log(39.0), 1e-6);
  EXPECT_EQ(lse[3], -infinity);
  EXPECT_EQ(lse[4], infinity);
  EXPECT_TRUE(std::isnan(lse[5]));
  EXPECT_EQ(lse[6], 3e38f);
  EXPECT_STATUS_OK(softmax_cross_entropy_grad(s, dlogits, dsum, logits, labels, lse, -100));
  check_with_grad(s, logits, dsum, labels, -100, sum, dlogits);
}

TEST(CrossEntropy, RefusesLabelsOutsideOfTheClasses) {
  test_stream s;
  const tensor logits({4, 5}), lse({4}), sum({}), count({}), dsum({});
  index_tensor labels({4}, 0, 5);
  labels[2] = 5;
  for (const status &result : {softmax_cross_entropy(s, sum, count, lse, logits, labels, -100),
                               softmax_cross_entropy_with_grad(s, sum, logits, dsum, labels, -100)}) {
    EXPECT_EQ(result.code(), status_code::bad_input);
    EXPECT_NE(result.message().find("label 5 at position 2"), std::string::npos) << result.message();
  }
}

} // namespace
} // namespace windlass::rt::testing
