#include "testing.h"

namespace windlass::rt::testing {
namespace {

/// A convolution, or with `groups` channels and one channel in each group pooling.
struct problem {
  std::int64_t batch, groups, ins, outs;
  sizes in, window, strides, dilations, low, high;
  std::vector<int> order_x = {}, order_w = {}, order_y = {};
  std::int64_t gap = 0;

  std::size_t spatial() const { return in.size(); }
  sizes out() const {
    sizes result;
    for (std::size_t i = 0; i < spatial(); ++i)
      result.push_back((in[i] + low[i] + high[i] - dilations[i] * (window[i] - 1) - 1) / strides[i] + 1);
    return result;
  }
  static sizes joined(std::int64_t first, std::int64_t second, const sizes &rest) {
    sizes result = {first, second};
    result.insert(result.end(), rest.begin(), rest.end());
    return result;
  }
  sizes x_shape() const { return joined(batch, groups * ins, in); }
  sizes w_shape() const { return joined(groups * outs, ins, window); }
  sizes y_shape() const { return joined(batch, groups * outs, out()); }
  windows where() const {
    windows of = {};
    for (std::size_t i = 0; i < spatial(); ++i) {
      of.sizes[i] = window[i];
      of.strides[i] = strides[i];
      of.dilations[i] = dilations[i];
      of.pads[i] = low[i];
    }
    return of;
  }
};

/// Returns the position of element i of a tensor of that shape.
sizes position(std::int64_t i, const sizes &shape) {
  sizes at(shape.size());
  for (std::size_t d = shape.size(); d-- > 0; i /= shape[d])
    at[d] = i % shape[d];
  return at;
}

/// Calls f(element of the input's plane, element of the window, element of the output's plane) for each pair of an
/// output and an element of its window that is inside the input, by output and then by element of the window.
template <class F> void for_taps(const problem &p, F f) {
  const sizes out = p.out();
  for (std::int64_t o = 0; o < product(out); ++o)
    for (std::int64_t k = 0; k < product(p.window); ++k) {
      const sizes at = position(o, out), tap = position(k, p.window);
      std::int64_t i = 0;
      bool is_inside = true;
      for (std::size_t d = 0; d < p.spatial(); ++d) {
        const std::int64_t place = at[d] * p.strides[d] + tap[d] * p.dilations[d] - p.low[d];
        is_inside = is_inside && place >= 0 && place < p.in[d];
        i = i * p.in[d] + place;
      }
      if (is_inside)
        f(i, k, o);
    }
}

/// Calls f(element of x, of w, of y) for each product of a convolution.
template <class F> void for_products(const problem &p, F f) {
  const std::int64_t in = product(p.in), out = product(p.out()), window = product(p.window);
  for (std::int64_t b = 0; b < p.batch; ++b)
    for (std::int64_t o = 0; o < p.groups * p.outs; ++o)
      for (std::int64_t c = 0; c < p.ins; ++c)
        for_taps(p, [&](std::int64_t i, std::int64_t k, std::int64_t at) {
          f(((b * p.groups + o / p.outs) * p.ins + c) * in + i, (o * p.ins + c) * window + k,
            (b * p.groups * p.outs + o) * out + at);
        });
}

void check(const problem &p, bool accumulate, std::int32_t threads) {
  const tensor x(p.x_shape(), p.order_x, p.gap), w(p.w_shape(), p.order_w, p.gap), y(p.y_shape(), p.order_y, p.gap);
  const tensor dx(p.x_shape(), p.order_x, p.gap), dw(p.w_shape(), p.order_w, p.gap), dy(p.y_shape(), p.order_y, p.gap);
  const auto start = [&](const tensor &t) {
    return accumulate ? t.values() : std::vector<double>(static_cast<std::size_t>(t.elements()));
  };
  std::vector<double> want_y = start(y), want_dx = start(dx), want_dw = start(dw);
  const std::vector<double> xs = x.values(), ws = w.values(), dys = dy.values();
  for_products(p, [&](std::int64_t i, std::int64_t k, std::int64_t o) {
    const auto at_x = static_cast<std::size_t>(i), at_w = static_cast<std::size_t>(k),
               at_y = static_cast<std::size_t>(o);
    want_y[at_y] += xs[at_x] * ws[at_w];
    want_dx[at_x] += dys[at_y] * ws[at_w];
    want_dw[at_w] += dys[at_y] * xs[at_x];
  });
  test_stream s(threads, std::max<std::int64_t>(convolution_scratch_bytes(y, w, threads), 64));
  EXPECT_STATUS_OK(convolution(s, y, x, w, p.where(), accumulate));
  EXPECT_STATUS_OK(convolution_data_grad(s, dx, dy, w, p.where(), accumulate));
  EXPECT_STATUS_OK(convolution_weight_grad(s, dw, dy, x, p.where(), accumulate));
  expect_near(y, want_y, 2e-6);
  expect_near(dx, want_dx, 2e-6);
  expect_near(dw, want_dw, 3e-6);
}

void check_all(const problem &p) {
  for (const bool accumulate : {false, true})
    for (const std::int32_t threads : {1, 3})
      check(p, accumulate, threads);
}

TEST(Convolution, OfImages) {
  check_all({2, 1, 3, 5, {9, 11}, {3, 3}, {1, 1}, {1, 1}, {1, 1}, {1, 1}});
  check_all({2, 1, 4, 6, {9, 11}, {1, 1}, {1, 1}, {1, 1}, {0, 0}, {0, 0}});
  check_all({1, 1, 3, 4, {7, 5}, {7, 5}, {1, 1}, {1, 1}, {0, 0}, {0, 0}});
}
TEST(Convolution, WithStrides) {
  check_all({2, 1, 3, 5, {12, 9}, {3, 3}, {2, 2}, {1, 1}, {1, 1}, {1, 1}});
  check_all({2, 1, 3, 5, {12, 9}, {3, 2}, {3, 1}, {1, 1}, {0, 1}, {1, 0}});
  check_all({2, 1, 4, 6, {8, 8}, {1, 1}, {2, 2}, {1, 1}, {0, 0}, {0, 0}});
  check_all({1, 1, 2, 3, {9, 9}, {2, 2}, {4, 3}, {1, 1}, {0, 0}, {0, 0}}); // elements that no window has
}
TEST(Convolution, WithDilations) {
  check_all({2, 1, 3, 5, {12, 9}, {3, 3}, {1, 1}, {2, 3}, {2, 3}, {2, 3}});
  check_all({2, 1, 3, 5, {12, 9}, {3, 2}, {2, 3}, {3, 2}, {1, 0}, {4, 1}});
}
TEST(Convolution, WithPadsOnOneSide) {
  check_all({2, 1, 3, 5, {6, 5}, {3, 3}, {1, 1}, {1, 1}, {2, 0}, {0, 2}});
  check_all({1, 1, 2, 3, {3, 3}, {3, 3}, {1, 1}, {1, 1}, {5, 0}, {0, 6}}); // windows outside of the image
}
TEST(Convolution, InGroups) {
  check_all({2, 3, 2, 4, {7, 8}, {3, 3}, {1, 1}, {1, 1}, {1, 1}, {1, 1}});
  check_all({2, 3, 4, 2, {7, 8}, {3, 3}, {2, 1}, {1, 2}, {1, 1}, {1, 1}});
}
TEST(Convolution, OfEachChannel) {
  check_all({2, 7, 1, 1, {9, 10}, {3, 3}, {1, 1}, {1, 1}, {1, 1}, {1, 1}});
  check_all({2, 5, 1, 3, {9, 10}, {5, 3}, {2, 2}, {1, 2}, {2, 2}, {2, 1}});
  check_all({2, 1, 1, 6, {9, 10}, {3, 3}, {1, 2}, {1, 1}, {1, 0}, {0, 1}});
}
TEST(Convolution, OfSignalsAndVolumes) {
  check_all({3, 1, 4, 5, {31}, {5}, {2}, {2}, {3}, {1}});
  check_all({2, 4, 1, 2, {31}, {4}, {1}, {3}, {0}, {2}});
  check_all({2, 1, 3, 4, {5, 6, 7}, {3, 2, 3}, {1, 2, 1}, {1, 1, 2}, {1, 0, 2}, {1, 1, 0}});
  check_all({1, 2, 2, 2, {4, 5, 4}, {2, 3, 1}, {2, 1, 1}, {1, 1, 1}, {0, 1, 0}, {1, 1, 0}});
}
TEST(Convolution, OfSeveralTiles) {
  check_all({1, 1, 40, 9, {19, 21}, {3, 3}, {1, 1}, {1, 1}, {1, 1}, {1, 1}});
  check_all({1, 1, 5, 150, {6, 6}, {3, 3}, {1, 1}, {1, 1}, {1, 1}, {1, 1}});
  check_all({1, 1, 2, 2, {700}, {300}, {1}, {1}, {20}, {20}});
}
TEST(Convolution, OfAnyLayout) {
  // Channels last, transposed kernels, and gaps.
  const problem plain = {2, 1, 3, 5, {6, 7}, {3, 2}, {1, 2}, {1, 1}, {1, 0}, {1, 1}};
  problem p = plain;
  p.order_x = p.order_y = {0, 2, 3, 1};
  check_all(p);
  p.order_w = {2, 3, 1, 0};
  check_all(p);
  p = plain;
  p.gap = 3;
  check_all(p);
  p.order_x = {3, 2, 1, 0};
  p.order_w = {1, 0, 3, 2};
  p.order_y = {1, 0, 3, 2};
  check_all(p);
  p = {2, 4, 1, 2, {6, 7}, {3, 2}, {1, 2}, {1, 1}, {1, 0}, {1, 1}};
  p.order_x = p.order_y = {0, 2, 3, 1};
  p.order_w = {2, 3, 1, 0};
  check_all(p);
}
TEST(Convolution, GivesTheSameBitsForAnyThreads) {
  const problem p = {3, 1, 9, 33, {17, 18}, {3, 3}, {1, 1}, {1, 1}, {1, 1}, {1, 1}};
  const tensor x(p.x_shape()), w(p.w_shape()), dy(p.y_shape());
  std::vector<double> first;
  for (const std::int32_t threads : {1, 2, 5}) {
    const tensor y(p.y_shape()), dx(p.x_shape()), dw(p.w_shape());
    test_stream s(threads, convolution_scratch_bytes(y, w, threads));
    EXPECT_STATUS_OK(convolution(s, y, x, w, p.where(), false));
    EXPECT_STATUS_OK(convolution_data_grad(s, dx, dy, w, p.where(), false));
    EXPECT_STATUS_OK(convolution_weight_grad(s, dw, dy, x, p.where(), false));
    std::vector<double> all = y.values();
    for (const tensor *each : {&dx, &dw})
      for (const double value : each->values())
        all.push_back(value);
    if (first.empty())
      first = all;
    EXPECT_EQ(all, first);
  }
}
TEST(Convolution, RefusesSizesThatDisagree) {
  const problem p = {2, 1, 3, 5, {6, 7}, {3, 3}, {1, 1}, {1, 1}, {1, 1}, {1, 1}};
  const tensor x(p.x_shape()), w(p.w_shape()), y(p.y_shape()), other({2, 4, 6, 7}), flat({2, 3});
  test_stream s(1, 1 << 20);
  windows of = p.where();
  EXPECT_EQ(convolution(s, y, other, w, of, false).code(), status_code::internal);
  EXPECT_EQ(convolution(s, y, flat, w, of, false).code(), status_code::internal);
  EXPECT_EQ(convolution(s, other, x, w, of, false).code(), status_code::internal);
  of.sizes[0] = 2;
  EXPECT_EQ(convolution(s, y, x, w, of, false).code(), status_code::internal);
  of = p.where();
  of.strides[1] = 0;
  EXPECT_EQ(convolution_data_grad(s, x, y, w, of, false).code(), status_code::internal);
}

void check_pooling(const problem &p, std::int32_t threads, bool has_nan = false) {
  test_stream s(threads);
  const tensor x(p.x_shape(), p.order_x, p.gap), dy(p.y_shape(), p.order_y, p.gap);
  // Equal elements: the first counts.
  for (std::int64_t i = 0; i < x.elements(); ++i)
    x[i] = std::round(x[i] * 2);
  if (has_nan)
    x[x.elements() / 2] = std::nanf("");
  const std::int64_t in = product(p.in), out = product(p.out()), planes = p.batch * p.groups;
  const std::vector<double> xs = x.values(), dys = dy.values();
  for (const bool accumulate : {false, true}) {
    const tensor y(p.y_shape(), p.order_y, p.gap), dx(p.x_shape(), p.order_x), want(p.x_shape());
    std::vector<double> want_y(static_cast<std::size_t>(planes * out), -INFINITY),
        want_dx = accumulate ? dx.values() : std::vector<double>(xs.size());
    for (std::int64_t plane = 0; plane < planes; ++plane) {
      std::vector<std::int64_t> largest(static_cast<std::size_t>(out), -1);
      for_taps(p, [&](std::int64_t i, std::int64_t, std::int64_t o) {
        const double value = xs[static_cast<std::size_t>(plane * in + i)];
        double &most = want_y[static_cast<std::size_t>(plane * out + o)];
        if (std::int64_t &at = largest[static_cast<std::size_t>(o)];
            at < 0 || value > most || (std::isnan(value) && !std::isnan(most))) {
          at = i;
          most = value;
        }
      });
      for (std::int64_t o = 0; o < out; ++o)
        want_dx[static_cast<std::size_t>(plane * in + largest[static_cast<std::size_t>(o)])] +=
            dys[static_cast<std::size_t>(plane * out + o)];
    }
    EXPECT_STATUS_OK(max_pool(s, y, x, p.where()));
    EXPECT_STATUS_OK(max_pool_grad(s, dx, dy, x, p.where(), accumulate));
    expect_near(y, want_y, 0);
    expect_near(dx, want_dx, 1e-6);
  }
  for (const bool accumulate : {false, true})
    for (const bool counts_pads : {false, true}) {
      const tensor y(p.y_shape(), p.order_y, p.gap), dx(p.x_shape(), p.order_x);
      std::vector<double> counts(static_cast<std::size_t>(out), counts_pads ? double(product(p.window)) : 0.0);
      if (!counts_pads)
        for_taps(p, [&](std::int64_t, std::int64_t, std::int64_t o) { ++counts[static_cast<std::size_t>(o)]; });
      std::vector<double> want_y(static_cast<std::size_t>(planes * out)),
          want_dx = accumulate ? dx.values() : std::vector<double>(xs.size());
      for (std::int64_t plane = 0; plane < planes; ++plane)
        for_taps(p, [&](std::int64_t i, std::int64_t, std::int64_t o) {
          const auto at_x = static_cast<std::size_t>(plane * in + i), at_y = static_cast<std::size_t>(plane * out + o);
          want_y[at_y] += xs[at_x] / counts[static_cast<std::size_t>(o)];
          want_dx[at_x] += dys[at_y] / counts[static_cast<std::size_t>(o)];
        });
      EXPECT_STATUS_OK(average_pool(s, y, x, p.where(), counts_pads));
      EXPECT_STATUS_OK(average_pool_grad(s, dx, dy, p.where(), counts_pads, accumulate));
      expect_near(y, want_y, 1e-6);
      expect_near(dx, want_dx, 1e-6);
    }
}

TEST(Pooling, OfImages) {
  for (const std::int32_t threads : {1, 3}) {
    check_pooling({2, 3, 1, 1, {8, 10}, {2, 2}, {2, 2}, {1, 1}, {0, 0}, {0, 0}}, threads);
    check_pooling({2, 3, 1, 1, {9, 11}, {3, 3}, {2, 2}, {1, 1}, {1, 1}, {1, 1}}, threads);
    check_pooling({2, 3, 1, 1, {9, 11}, {3, 2}, {1, 3}, {2, 1}, {2, 0}, {0, 1}}, threads);
    check_pooling({2, 3, 1, 1, {5, 4}, {5, 4}, {1, 1}, {1, 1}, {0, 0}, {0, 0}}, threads);
  }
}
TEST(Pooling, OfSignalsAndVolumes) {
  check_pooling({3, 2, 1, 1, {19}, {3}, {2}, {1}, {1}, {1}}, 2);
  check_pooling({2, 2, 1, 1, {5, 6, 7}, {2, 3, 3}, {2, 1, 2}, {1, 1, 1}, {0, 1, 1}, {1, 1, 0}}, 2);
}
TEST(Pooling, OfAnyLayout) {
  problem p = {2, 3, 1, 1, {9, 11}, {3, 3}, {2, 2}, {1, 1}, {1, 1}, {1, 1}};
  p.order_x = {0, 2, 3, 1};
  p.gap = 2;
  check_pooling(p, 2);
  p.order_y = {3, 2, 1, 0};
  check_pooling(p, 2);
}
TEST(Pooling, TakesNaNForTheLargest) {
  check_pooling({1, 1, 1, 1, {9, 11}, {3, 3}, {2, 2}, {1, 1}, {1, 1}, {1, 1}}, 1, true);
}
TEST(Pooling, RefusesSizesThatDisagree) {
  const problem p = {2, 3, 1, 1, {8, 10}, {2, 2}, {2, 2}, {1, 1}, {0, 0}, {0, 0}};
  const tensor x(p.x_shape()), y(p.y_shape()), other({2, 4, 8, 10});
  test_stream s(1);
  EXPECT_EQ(max_pool(s, y, other, p.where()).code(), status_code::internal);
  EXPECT_EQ(max_pool_grad(s, x, y, other, p.where(), false).code(), status_code::internal);
  EXPECT_EQ(average_pool_grad(s, other, y, p.where(), false, false).code(), status_code::internal);
}

} // namespace
} // namespace windlass::rt::testing
