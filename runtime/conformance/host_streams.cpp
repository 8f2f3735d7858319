// Streams of the host beside those that compute.
#include "testing.h"

#include "windlass/rt/map.h"

namespace windlass::rt::testing {
namespace {

struct doubled_and_one {
  static constexpr const char *name = "doubled_and_one";
  using outputs = type_list<float>;
  using inputs = type_list<float>;
  WINDLASS_FN static void apply(float &r0, float a0) { r0 = a0 >= 1e6f ? a0 - 1e6f : 2 * a0 + 1; }
};

tensor scalar_tensor(float value) {
  tensor t{sizes{}};
  t[0] = value;
  return t;
}

/// A gradient that `compute` makes, the update of a weight by `updating`, and what `compute` makes of the weight.
std::vector<double> update(stream &compute, stream &updating, bool has_list) {
  constexpr std::int64_t n = 5000;
  const tensor w({n}), m({n}), v({n}), g({n}), used({n}), rate = scalar_tensor(0.01f), tenth = scalar_tensor(0.1f),
                                                          one = scalar_tensor(1);
  for (std::int64_t i = 0; i < n; ++i) {
    w[i] = g[i] = float(i % 17) - 8;
    m[i] = v[i] = 0;
  }
  event gradient, weight;
  EXPECT_STATUS_OK(map(compute, doubled_and_one(), {g}, {g}));
  EXPECT_STATUS_OK(compute.record(gradient));
  EXPECT_STATUS_OK(updating.wait(gradient));
  if (has_list) {
    updated_parameters all;
    all.count = 1;
    all.of[0] = {n, &w[0], &m[0], &v[0], view(g).data, nullptr};
    EXPECT_STATUS_OK(adamw_list(updating, all, rate, tenth, tenth, tenth, tenth, one, one, one, decay_mode::decoupled));
  } else {
    EXPECT_STATUS_OK(
        adamw(updating, w, m, v, {}, g, rate, tenth, tenth, tenth, tenth, one, one, one, decay_mode::decoupled));
  }
  EXPECT_STATUS_OK(sgd(updating, w, m, {}, g, rate, tenth, tenth, one, false));
  EXPECT_STATUS_OK(updating.record(weight));
  EXPECT_STATUS_OK(compute.wait(weight));
  EXPECT_STATUS_OK(map(compute, doubled_and_one(), {used}, {w}));
  EXPECT_STATUS_OK(compute.synchronize());
  EXPECT_STATUS_OK(updating.synchronize());
  return used.values();
}

TEST(HostStream, UpdatesAsTheStreamThatComputes) {
  for (const bool has_list : {false, true}) {
    const std::unique_ptr<stream> compute = make_worker_stream(2, nullptr, 0), host = make_host_stream(2);
    EXPECT_TRUE(host->is_on_host());
    EXPECT_NE(compute->is_on_host(), detail::backend_has_device);
    const std::vector<double> there = update(*compute, *host, has_list), here = update(*compute, *compute, has_list);
    EXPECT_EQ(there, here);
    EXPECT_NE(there.front(), there.back());
  }
}

/// Sums of squares on the host's threads, of gradients with and without gaps, and what `fill` sets there.
TEST(HostStream, SumsSquaresAndFills) {
  const std::unique_ptr<stream> host = make_host_stream(2);
  constexpr std::int64_t rows = 300, columns = 100;
  const tensor g({rows, columns}), sum = scalar_tensor(-1), listed = scalar_tensor(-1);
  double expected = 0, expected_part = 0;
  for (std::int64_t i = 0; i < rows * columns; ++i) {
    g[i] = float(i % 23) / 4 - 2;
    const double square = double(g[i]) * double(g[i]);
    expected += square;
    expected_part += i % columns < 7 ? square : 0;
  }
  view part = g;
  part.sizes[1] = 7;
  EXPECT_STATUS_OK(fill(*host, sum, 0));
  EXPECT_STATUS_OK(square_sum(*host, sum, part, /*accumulate=*/true));
  EXPECT_STATUS_OK(square_sum(*host, sum, g, /*accumulate=*/true));
  squared_gradients all;
  all.count = 2;
  all.of[0] = all.of[1] = {rows * columns, view(g).data};
  EXPECT_STATUS_OK(square_sum_list(*host, listed, all, /*accumulate=*/false));
  EXPECT_STATUS_OK(host->synchronize());
  EXPECT_FLOAT_EQ(sum[0], float(expected + expected_part));
  EXPECT_FLOAT_EQ(listed[0], float(2 * expected));
}

TEST(HostStream, TakesMoreCommandsThanItHolds) {
  const std::unique_ptr<stream> host = make_host_stream(1);
  const tensor x({100});
  float expected = x[99];
  for (std::uint64_t i = 0; i < 3 * stream::slots; ++i) {
    EXPECT_STATUS_OK(map(*host, on_host<doubled_and_one>(), {x}, {x}));
    doubled_and_one::apply(expected, expected);
  }
  EXPECT_STATUS_OK(host->synchronize());
  EXPECT_EQ(x[99], expected);
}

TEST(HostStream, StopsAtTheFirstError) {
  const std::unique_ptr<stream> host = make_host_stream(1);
  const tensor x({1});
  float *const at = &x[0];
  *at = 0;
  EXPECT_STATUS_OK(host->submit([]() -> status { return {}; }));
  static_cast<void>(host->submit([]() -> status { return bad_input("the first"); }));
  static_cast<void>(host->submit([at]() -> status {
    *at = 1;
    return bad_input("the second");
  }));
  EXPECT_EQ(host->synchronize().message(), "the first");
  EXPECT_EQ(x[0], 0);
}

TEST(HostStreams, CopiesOverOneLinkTakeTurns) {
  if (detail::backend_has_device)
    GTEST_SKIP() << "a device has links of its own";
  constexpr std::int64_t n = 100000, rate = 40'000'000;
  const tensor a({n}), b({n}), to_a({n}), to_b({n});
  emulated_link link;
  link.set_rate(rate);
  const std::unique_ptr<stream> first = make_worker_stream(1, nullptr, 0), second = make_worker_stream(1, nullptr, 0);
  first->use_link(&link);
  second->use_link(&link);
  const double begin = clock_seconds();
  EXPECT_STATUS_OK(copy(*first, to_a, a));
  EXPECT_STATUS_OK(copy(*second, to_b, b));
  EXPECT_STATUS_OK(first->synchronize());
  EXPECT_STATUS_OK(second->synchronize());
  EXPECT_GE(clock_seconds() - begin, 2.0 * n * sizeof(float) / rate);
  expect_near(to_a, a.values(), 0);
  expect_near(to_b, b.values(), 0);
}

} // namespace
} // namespace windlass::rt::testing
