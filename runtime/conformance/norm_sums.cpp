// Norms with the sums before and behind them in one command.
#include "testing.h"

namespace windlass::rt::testing {
namespace {

/// Columns and elements between rows, as in normalization.cpp.
const std::pair<std::int64_t, std::int64_t> widths[] = {{67, 0}, {72, 0}, {83, 5}, {8203, 5}};
constexpr double epsilon = 1e-3;

struct norm_of_sum {
  test_stream s;
  std::int64_t n;
  sizes shape = {3, 29, n};
  tensor a, b, c, sum, y, mean = tensor({3, 29}), rstd = tensor({3, 29}, {1, 0}), scale = tensor({n}),
                          bias = tensor({n});

  /// b is a vector, repeated over the rows, where that is asked for.
  norm_of_sum(std::int64_t columns, std::int64_t gap, bool repeats, std::int32_t threads,
              const std::vector<int> &order = {})
      : s(threads), n(columns), a(shape, order, gap),
        b(shape, {}, repeats ? 0 : gap, repeats ? std::vector<int>{0, 1} : std::vector<int>{}), c(shape, {}, gap),
        sum(shape, {}, gap), y(shape, order, gap) {}

  /// What is computed apart, each in double from what the kernel wrote before it.
  void expect(const std::vector<double> &e_sum, const tensor &of, const tensor &result, bool centers, bool has_bias) {
    expect_near(of, e_sum, 1e-6);
    std::vector<double> e_y, e_mean, e_rstd;
    for (std::int64_t r = 0; r < 87; ++r) {
      double total = 0, squares = 0;
      for (std::int64_t i = 0; i < n; ++i)
        total += e_sum[static_cast<std::size_t>(r * n + i)];
      const double m = centers ? total / double(n) : 0;
      for (std::int64_t i = 0; i < n; ++i)
        squares += std::pow(e_sum[static_cast<std::size_t>(r * n + i)] - m, 2);
      e_mean.push_back(m);
      e_rstd.push_back(1 / std::sqrt(squares / double(n) + epsilon));
      for (std::int64_t i = 0; i < n; ++i)
        e_y.push_back((e_sum[static_cast<std::size_t>(r * n + i)] - m) * e_rstd.back() * double(scale[i]) +
                      (has_bias ? double(bias[i]) : 0.0));
    }
    expect_near(result, e_y, 3e-6);
    expect_near(rstd, e_rstd, 3e-6);
    if (centers)
      expect_near(mean, e_mean, 3e-6);
  }
  std::vector<double> add_up(bool has_third) const {
    std::vector<double> total;
    for (std::int64_t i = 0; i < a.elements(); ++i)
      total.push_back(double(a[i]) + double(b[i]) + (has_third ? double(c[i]) : 0.0));
    return total;
  }
};

TEST(NormOfSum, OfAnyWidth) {
  for (const auto &[n, gap] : widths)
    for (const bool repeats : {false, true}) {
      norm_of_sum t(n, gap, repeats, 2);
      EXPECT_STATUS_OK(add_layer_norm(t.s, t.sum, t.y, t.mean, t.rstd, t.a, t.b, t.c, t.scale, t.bias, epsilon));
      t.expect(t.add_up(true), t.sum, t.y, true, true);
      EXPECT_STATUS_OK(add_layer_norm(t.s, t.sum, t.y, t.mean, t.rstd, t.a, t.b, {}, t.scale, {}, epsilon));
      t.expect(t.add_up(false), t.sum, t.y, true, false);
      EXPECT_STATUS_OK(add_rms_norm(t.s, t.sum, t.y, t.rstd, t.a, t.b, {}, t.scale, epsilon));
      t.expect(t.add_up(false), t.sum, t.y, false, false);
      EXPECT_STATUS_OK(add_rms_norm(t.s, t.sum, t.y, t.rstd, t.a, t.b, t.c, t.scale, epsilon));
      t.expect(t.add_up(true), t.sum, t.y, false, false);
    }
}

TEST(NormOfSum, OfAnyStride) {
  for (const std::vector<int> &order : {std::vector<int>{1, 0, 2}, std::vector<int>{2, 1, 0}}) {
    norm_of_sum t(67, 0, true, 3, order);
    EXPECT_STATUS_OK(add_layer_norm(t.s, t.sum, t.y, t.mean, t.rstd, t.a, t.b, t.c, t.scale, t.bias, epsilon));
    t.expect(t.add_up(true), t.sum, t.y, true, true);
  }
}

TEST(NormOfSum, InPlaceOfTerms) {
  for (const auto &[n, gap] : widths) {
    norm_of_sum t(n, gap, true, 2);
    const std::vector<double> total = t.add_up(true);
    EXPECT_STATUS_OK(add_layer_norm(t.s, t.c, t.a, t.mean, t.rstd, t.a, t.b, t.c, t.scale, t.bias, epsilon));
    t.expect(total, t.c, t.a, true, true);
  }
}

TEST(NormOfSum, RefusesSizesThatDisagree) {
  norm_of_sum t(67, 0, false, 1);
  const tensor other({3, 29, 66});
  EXPECT_EQ(add_layer_norm(t.s, t.sum, t.y, t.mean, t.rstd, t.a, other, {}, t.scale, t.bias, epsilon).code(),
            status_code::internal);
  EXPECT_EQ(add_rms_norm(t.s, t.sum, t.y, t.rstd, t.a, t.b, other, t.scale, epsilon).code(), status_code::internal);
}

/// What is added to the gradient, also where it takes its place; and gradients of parameters that add up.
TEST(NormGrad, Adds) {
  for (const auto &[n, gap] : widths)
    for (const bool centers : {false, true}) {
      test_stream s(2);
      const sizes shape = {3, 29, n};
      const tensor x(shape, {}, gap), dy(shape, {}, gap), dx(shape, {}, gap), mean({3, 29}), rstd({3, 29}), scale({n}),
          dscale({n}), dbias({n}), more(shape, {1, 0, 2}, gap);
      const auto run = [&](const tensor &to, const view &added, bool accumulate) {
        EXPECT_STATUS_OK(centers ? layer_norm_grad(s, to, dscale, dbias, dy, x, scale, mean, rstd, added, accumulate)
                                 : rms_norm_grad(s, to, dscale, dy, x, scale, rstd, added, accumulate));
      };
      run(dx, {}, false);
      std::vector<double> e_dx = dx.values(), e_dscale = dscale.values(), e_dbias = dbias.values();
      for (std::int64_t i = 0; i < dx.elements(); ++i)
        e_dx[static_cast<std::size_t>(i)] += double(more[i]);
      for (std::int64_t i = 0; i < n; ++i) {
        e_dscale[static_cast<std::size_t>(i)] *= 2;
        e_dbias[static_cast<std::size_t>(i)] *= centers ? 2 : 1;
      }
      run(dx, more, true);
      expect_near(dx, e_dx, 1e-6);
      expect_near(dscale, e_dscale, 1e-6);
      expect_near(dbias, e_dbias, 1e-6);
      run(more, more, false);
      expect_near(more, e_dx, 1e-6);
    }
}

} // namespace
} // namespace windlass::rt::testing
