#include "testing.h"

#include "windlass/rt/detail/half.h"

#include <limits>

namespace windlass::rt::testing {
namespace {

void check(const sizes &kept, const sizes &reduced, const std::vector<int> &order, reduction kind, bool accumulate,
           std::int32_t threads, std::int64_t gap) {
  test_stream s(threads);
  sizes shape = kept;
  shape.insert(shape.end(), reduced.begin(), reduced.end());
  const tensor in(shape, order, gap), out(kept);
  std::vector<double> expected = out.values();
  const std::int64_t n = in.elements() / std::max<std::int64_t>(out.elements(), 1);
  for (std::int64_t i = 0; i < out.elements(); ++i) {
    double r = kind == reduction::sum ? 0.0 : static_cast<double>(in[i * n]);
    for (std::int64_t j = 0; j < n; ++j) {
      const auto x = static_cast<double>(in[i * n + j]);
      r = kind == reduction::sum ? r + x : kind == reduction::max ? std::max(r, x) : std::min(r, x);
    }
    double &e = expected[static_cast<std::size_t>(i)];
    e = accumulate ? e + r : r;
  }
  EXPECT_STATUS_OK(reduce(s, out, in, static_cast<std::int32_t>(reduced.size()), kind, accumulate));
  expect_near(out, expected, 1e-6);
}

void check_all(const sizes &kept, const sizes &reduced, const std::vector<int> &order = {}, std::int64_t gap = 3) {
  for (const std::int32_t threads : {1, 3}) {
    check(kept, reduced, order, reduction::sum, false, threads, gap);
    check(kept, reduced, order, reduction::sum, true, threads, gap);
    check(kept, reduced, order, reduction::max, false, threads, gap);
    check(kept, reduced, order, reduction::min, false, threads, gap);
  }
}

TEST(Reduce, Rows) { check_all({17}, {129}); }
TEST(Reduce, Columns) { check_all({300}, {41}, {1, 0}); }
TEST(Reduce, ColumnsOfManyDims) { check_all({3, 70}, {5, 7}, {2, 0, 3, 1}); }
TEST(Reduce, Everything) {
  check_all({}, {37, 1001});
  check_all({}, {37, 11}, {1, 0});
}
TEST(Reduce, MiddleDims) { check_all({5, 6}, {7}, {0, 2, 1}); }
TEST(Reduce, NothingReduced) { check_all({5, 6}, {}); }
TEST(Reduce, OneElement) { check_all({1}, {1}); }
TEST(Reduce, WholePacks) {
  for (const std::int64_t gap : {0, 8}) {
    check_all({17}, {128}, {}, gap);
    check_all({304}, {41}, {1, 0}, gap);
    check_all({5, 16}, {7}, {0, 2, 1}, gap);
    check_all({}, {37, 1024}, {}, gap);
  }
}
TEST(Reduce, FewColumnsManyRows) { check_all({48}, {3000}, {1, 0}); }

TEST(Reduce, KeepsNaN) {
  test_stream s;
  tensor in({2, 40}), out({2});
  in[45] = std::numeric_limits<float>::quiet_NaN();
  for (const reduction kind : {reduction::sum, reduction::max, reduction::min}) {
    EXPECT_STATUS_OK(reduce(s, out, in, 1, kind, false));
    EXPECT_FALSE(std::isnan(out[0]));
    EXPECT_TRUE(std::isnan(out[1]));
  }
}

TEST(Reduce, LongSumsStayExact) {
  test_stream s;
  tensor in({1 << 20}), out({});
  in.fill_with([](std::int64_t) { return 0.1f; });
  EXPECT_STATUS_OK(reduce(s, out, in, 1, reduction::sum, false));
  EXPECT_NEAR(out[0], 0.1f * (1 << 20), 0.02);
}

TEST(Reduce, TheBitsDoNotDependOnTheTeam) {
  tensor in({99991}), one({}), three({});
  test_stream s1(1);
  EXPECT_STATUS_OK(reduce(s1, one, in, 1, reduction::sum, false));
  test_stream s3(3);
  EXPECT_STATUS_OK(reduce(s3, three, in, 1, reduction::sum, false));
  EXPECT_EQ(one[0], three[0]);
}

TEST(SquareSum, AnyStrides) {
  for (const bool accumulate : {false, true}) {
    test_stream s;
    const tensor in({33, 65}, {1, 0}, 2), out({});
    double expected = accumulate ? static_cast<double>(out[0]) : 0.0;
    for (const double x : in.values())
      expected += x * x;
    EXPECT_STATUS_OK(square_sum(s, out, in, accumulate));
    EXPECT_NEAR(static_cast<double>(out[0]), expected, 1e-6 * expected);
  }
}

/// Several gradients, each beginning `offset` elements behind a multiple of 64 bytes.
struct several_gradients {
  std::vector<tensor> tensors;
  squared_gradients list;

  explicit several_gradients(std::int64_t offset) {
    for (const std::int64_t n : {1, 7, 4096, 20003, 4097, 12, 70001, 3})
      tensors.emplace_back(sizes{n + offset}).fill_with([&](std::int64_t i) { return value(i - offset, n); });
    for (const tensor &t : tensors)
      list.of[list.count++] = {t.elements() - offset, t.v().data + offset * 4};
  }
  static float value(std::int64_t i, std::int64_t n) { return static_cast<float>((i * 7919 + n) % 1009) / 997 - 0.4f; }

  double sum() const {
    double all = 0;
    for (std::int32_t i = 0; i < list.count; ++i)
      for (std::int64_t k = 0; k < list.of[i].elements; ++k) {
        const auto x = static_cast<double>(reinterpret_cast<const float *>(list.of[i].data)[k]);
        all += x * x;
      }
    return all;
  }
};

float sum_list(const several_gradients &gradients, float before, bool accumulate, std::int32_t threads,
               std::int64_t scratch_bytes) {
  test_stream s(threads, scratch_bytes);
  const tensor out({});
  out[0] = before;
  EXPECT_STATUS_OK(square_sum_list(s, out, gradients.list, accumulate));
  return out[0];
}

/// Numbers in bf16 give the bits that they give in f32.
TEST(SquareSum, OfGradientsInBf16) {
  for (const std::int64_t offset : {0, 1}) {
    std::vector<tensor> wide;
    std::vector<basic_tensor<detail::bf16>> narrow;
    squared_gradients list, expected;
    list.type = element_type::bf16;
    for (const std::int64_t n : {1, 7, 4096, 20003}) {
      wide.emplace_back(sizes{n + offset});
      narrow.emplace_back(sizes{n + offset}, element_type::bf16);
      for (std::int64_t i = 0; i < n + offset; ++i) {
        narrow.back()[i] = detail::bf16(wide.back()[i]);
        wide.back()[i] = static_cast<float>(narrow.back()[i]);
      }
      list.of[list.count++] = {n, narrow.back().v().data + 2 * offset};
      expected.of[expected.count++] = {n, wide.back().v().data + 4 * offset};
    }
    test_stream s(2);
    const tensor out({}), other({}), alone({}), other_alone({});
    EXPECT_STATUS_OK(square_sum_list(s, out, list, false));
    EXPECT_STATUS_OK(square_sum_list(s, other, expected, false));
    EXPECT_EQ(out[0], other[0]);
    EXPECT_STATUS_OK(square_sum(s, alone, narrow.back(), false));
    EXPECT_STATUS_OK(square_sum(s, other_alone, wide.back(), false));
    EXPECT_EQ(alone[0], other_alone[0]);
  }
}

/// The bits depend neither on the team nor on where gradients begin.
TEST(SquareSum, OfSeveralGradientsInOneCommand) {
  for (const bool accumulate : {false, true})
    for (const std::int64_t scratch_bytes : {std::int64_t(1) << 21, std::int64_t(24), std::int64_t(0)}) {
      const several_gradients aligned(0);
      const float sum = sum_list(aligned, 5, accumulate, 1, scratch_bytes);
      const double expected = aligned.sum() + (accumulate ? 5 : 0);
      EXPECT_NEAR(static_cast<double>(sum), expected, 1e-6 * expected);
      EXPECT_EQ(sum_list(aligned, 5, accumulate, 3, scratch_bytes), sum);
      for (const std::int64_t offset : {1, 2, 3})
        EXPECT_EQ(sum_list(several_gradients(offset), 5, accumulate, 1, scratch_bytes), sum) << offset;
    }
}

/// On a processor they are those of a command for each, which add to one another.
TEST(SquareSum, OfSeveralGradientsIsThatOfOneAfterAnother) {
  if constexpr (detail::backend_has_device)
    GTEST_SKIP() << "a device sums all before it rounds";
  test_stream s;
  const several_gradients gradients(0);
  const tensor out({});
  for (std::size_t i = 0; i < gradients.tensors.size(); ++i)
    EXPECT_STATUS_OK(square_sum(s, out, gradients.tensors[i], i > 0));
  EXPECT_EQ(sum_list(gradients, 0, false, 2, 1 << 21), out[0]);
}

} // namespace
} // namespace windlass::rt::testing
