// Kernels on operands of 16 bits. They compute in f32, so that each result is the f32 kernel's result of the same
// numbers, which the other tests hold against doubles, rounded once to the stored type; and equal to it, but for the
// order of sums, where the result itself is f32.
#include "testing.h"

#include "attention_library.h"
#include "matrix_attention.h"

#include "windlass/rt/detail/half.h"
#include "windlass/rt/map.h"

namespace windlass::rt::testing {
namespace {

using detail::bf16;
using detail::f16;

template <class H> constexpr element_type type_of = std::is_same_v<H, bf16> ? element_type::bf16 : element_type::f16;
/// Largest error of one rounding, relative to the result, and, where results of f16 are below its normal range,
/// absolute.
template <class H> constexpr double unit = std::is_same_v<H, bf16> ? 1.0 / 256 : 1.0 / 2048;
template <class H> constexpr double tiny = std::is_same_v<H, bf16> ? 0 : 1.0 / (1 << 25);
/// The tolerance of the f32 results, relative to the largest: the kernels of both types may sum in different orders.
constexpr double noise = 1e-5;

/// The same numbers as H and as f32.
template <class H> struct both {
  basic_tensor<H> half;
  tensor full;
  explicit both(const sizes &shape, const std::vector<int> &order = {}, std::vector<int> repeated = {},
                std::int64_t gap = 0)
      : half(shape, type_of<H>, order, gap, repeated), full(shape, order, gap, repeated) {
    round();
  }
  /// Updates `half` after a change of `full`.
  void round() {
    for (std::int64_t i = 0; i < full.elements(); ++i) {
      half[i] = H(full[i]);
      full[i] = static_cast<float>(half[i]);
    }
  }
  /// What kernels wrote to `half`, also as f32.
  void take() {
    for (std::int64_t i = 0; i < full.elements(); ++i)
      full[i] = static_cast<float>(half[i]);
  }
  /// `half` holds what `full` holds, after that many roundings of values up to the largest (one: of each itself).
  void expect_rounded(int roundings = 1) const {
    double largest = 1e-30;
    for (std::int64_t i = 0; i < full.elements(); ++i)
      largest = std::max(largest, std::fabs(double(full[i])));
    for (std::int64_t i = 0; i < full.elements(); ++i) {
      const double got = double(static_cast<float>(half[i])), want = double(full[i]);
      const double size = roundings == 1 ? std::fabs(want) : largest;
      ASSERT_LE(std::fabs(got - want), roundings * (unit<H> * size + tiny<H>)+noise * largest)
          << "element " << i << " is " << got << ", in f32 " << want;
    }
  }
};

/// Products of f32 round their operands to 10 bits where that is asked for, and to none where it is not.
TEST(Tf32, RoundsOperandsOfProducts) {
  const tensor a({17, 64}), b({64, 9}), exact({17, 9}), rounded({17, 9});
  test_stream s;
  EXPECT_STATUS_OK(matmul(s, exact, a, b, 0, 1, false));
  static_cast<stream &>(s).multiply_tf32(true);
  EXPECT_STATUS_OK(matmul(s, rounded, a, b, 0, 1, false));
  double off = 0, largest = 0;
  for (std::int64_t i = 0; i < exact.elements(); ++i) {
    off = std::max(off, std::fabs(double(exact[i]) - double(rounded[i])));
    double size = 0; // of what is added up
    for (std::int64_t k = 0; k < 64; ++k)
      size += std::fabs(double(a[i / 9 * 64 + k]) * double(b[k * 9 + i % 9]));
    largest = std::max(largest, size);
  }
  EXPECT_LE(off, 2.0 / 1024 * largest); // each operand by up to one unit in the last place
  EXPECT_GT(off, 1e-5 * largest);
}

template <class H> class HalfTypes : public ::testing::Test {};
struct type_names {
  template <class H> static std::string GetName(int) { return std::is_same_v<H, bf16> ? "bf16" : "f16"; }
};
using types = ::testing::Types<bf16, f16>;
TYPED_TEST_SUITE(HalfTypes, types, type_names);

TYPED_TEST(HalfTypes, Matmul) {
  using H = TypeParam;
  test_stream s;
  for (const std::vector<int> &order : {std::vector<int>(), std::vector<int>{0, 2, 1}})
    for (const bool accumulate : {false, true}) {
      const both<H> a({3, 37, 53}, order), b({3, 53, 29}, order), out({3, 37, 29});
      const tensor wide({3, 37, 29}), expected({3, 37, 29});
      EXPECT_STATUS_OK(copy(s, expected, wide));
      EXPECT_STATUS_OK(matmul(s, out.half, a.half, b.half, 1, 1, accumulate));
      EXPECT_STATUS_OK(matmul(s, out.full, a.full, b.full, 1, 1, accumulate));
      out.expect_rounded();
      EXPECT_STATUS_OK(matmul(s, wide, a.half, b.half, 1, 1, accumulate));
      EXPECT_STATUS_OK(matmul(s, expected, a.full, b.full, 1, 1, accumulate));
      expect_near(wide, expected.values(), noise);
    }
}

/// What is behind whole packs of a large extent is a product of its own; contracted, it is added to what was rounded.
TYPED_TEST(HalfTypes, MatmulOfLargeOddExtents) {
  test_stream s;
  struct extents {
    std::int64_t m, n, k;
  };
  for (const extents &e : {extents{5, 521, 40}, {515, 9, 40}, {5, 9, 527}, {515, 521, 523}})
    for (const bool accumulate : {false, true}) {
      const both<TypeParam> a({e.m, e.k}), b({e.k, e.n}, {1, 0}), out({e.m, e.n});
      const tensor wide({e.m, e.n}), expected({e.m, e.n});
      EXPECT_STATUS_OK(copy(s, expected, wide));
      EXPECT_STATUS_OK(matmul(s, out.half, a.half, b.half, 0, 1, accumulate));
      EXPECT_STATUS_OK(matmul(s, out.full, a.full, b.full, 0, 1, accumulate));
      out.expect_rounded(2);
      EXPECT_STATUS_OK(matmul(s, wide, a.half, b.half, 0, 1, accumulate));
      EXPECT_STATUS_OK(matmul(s, expected, a.full, b.full, 0, 1, accumulate));
      expect_near(wide, expected.values(), noise);
    }
}

TYPED_TEST(HalfTypes, MatmulThatIsASumOfSeveral) {
  test_stream s;
  const both<TypeParam> a({6, 4, 9}, {2, 0, 1}), b({4, 9, 10}, {1, 0, 2});
  both<TypeParam> out({6, 10});
  for (const bool accumulate : {false, true}) {
    out.take();
    EXPECT_STATUS_OK(matmul(s, out.half, a.half, b.half, 0, 2, accumulate));
    EXPECT_STATUS_OK(matmul(s, out.full, a.full, b.full, 0, 2, accumulate));
    out.expect_rounded();
  }
}

/// The library adds to its f32 sums and rounds once; its tanh may be as far off as another rounding. Two kernels round
/// what the first of them stores, too.
TYPED_TEST(HalfTypes, ProductsWithEpilogues) {
  const std::string device = detail::device_name();
  for (const bool by_library : {false, true}) {
    test_stream s;
    const std::string library = detail::product_library(s);
    if (by_library)
      detail::choose_products(s, {device.c_str(), library.c_str(), {nullptr, 0}});
    const both<TypeParam> a({64, 40}), b({40, 32}, {1, 0}), bias({64, 32}, {}, {0}), out({64, 32}), input({64, 32});
    const int roundings = by_library ? 1 : 2;
    const both<TypeParam> added({64, 32});
    for (const bool adds : {false, true}) {
      EXPECT_STATUS_OK(matmul_bias(s, out.half, a.half, b.half, bias.half, adds ? added.half.v() : view(), 1));
      EXPECT_STATUS_OK(matmul_bias(s, out.full, a.full, b.full, bias.full, adds ? added.full.v() : view(), 1));
      out.expect_rounded(roundings);
    }
    EXPECT_STATUS_OK(matmul_bias_gelu(s, out.half, input.half, a.half, b.half, bias.half, 1));
    EXPECT_STATUS_OK(matmul_bias_gelu(s, out.full, input.full, a.full, b.full, bias.full, 1));
    out.expect_rounded(2);
    input.expect_rounded(roundings);
    EXPECT_STATUS_OK(matmul_gelu_grad(s, out.half, a.half, b.half, added.half, 1));
    EXPECT_STATUS_OK(matmul_gelu_grad(s, out.full, a.full, b.full, added.full, 1));
    out.expect_rounded(roundings);
    const tensor dweight({40, 32}), full_dweight({40, 32}), dbias({32}), full_dbias({32});
    const both<TypeParam> x({40, 64}, {1, 0}), dy({64, 32});
    for (const bool accumulate : {false, true}) {
      EXPECT_STATUS_OK(matmul_bias_grad(s, dweight, dbias, x.half, dy.half, 1, true, accumulate));
      EXPECT_STATUS_OK(matmul_bias_grad(s, full_dweight, full_dbias, x.full, dy.full, 1, true, accumulate));
      expect_near(dweight, full_dweight.values(), noise);
      expect_near(dbias, full_dbias.values(), noise);
    }
  }
}

/// The units for matrices multiply by weights, and in the gradient by slopes, of the stored type: of what is summed up,
/// each number is rounded once more, and results are as exact as several roundings of the largest. Wider heads and
/// those of two types have kernels that round once.
TYPED_TEST(HalfTypes, Attention) {
  using H = TypeParam;
  struct problem {
    std::int64_t heads, kv_heads, queries, keys, width, value_width;
    bool masked;
    int roundings;
  };
  const std::vector<int> order = {0, 2, 1, 3};
  test_stream s;
  for (const problem &p : {problem{4, 2, 40, 40, 16, 8, true, 4}, problem{2, 2, 70, 130, 64, 64, false, 4},
                           problem{2, 1, 33, 80, 40, 100, false, 4}, problem{1, 1, 50, 40, 128, 128, true, 4},
                           problem{2, 2, 20, 30, 136, 8, true, 1}})
    for (const bool causal : {false, true}) {
      const both<H> q({2, p.heads, p.queries, p.width}, order), k({2, p.kv_heads, p.keys, p.width}, order),
          v({2, p.kv_heads, p.keys, p.value_width}, order), dout({2, p.heads, p.queries, p.value_width}, order);
      both<H> out({2, p.heads, p.queries, p.value_width}, order);
      const both<H> dq({2, p.heads, p.queries, p.width}), dk({2, p.kv_heads, p.keys, p.width}, order),
          dv({2, p.kv_heads, p.keys, p.value_width}, order);
      const tensor lse({2, p.heads, p.queries}), full_lse({2, p.heads, p.queries}),
          mask({2, p.heads, p.queries, p.keys}, {}, 0, {1});
      const view added = p.masked ? mask.v() : view();
      EXPECT_EQ(cuda::takes_matrix_units({q.half, k.half, v.half, out.half}), p.roundings > 1);
      if (p.masked) // the first query of all sees nothing
        for (std::int64_t j = 0; j < p.keys; ++j)
          mask[j] = -std::numeric_limits<float>::infinity();
      EXPECT_STATUS_OK(attention(s, out.half, lse, q.half, k.half, v.half, added, 0.3, causal));
      EXPECT_STATUS_OK(attention(s, out.full, full_lse, q.full, k.full, v.full, added, 0.3, causal));
      out.expect_rounded(p.roundings);
      for (std::int64_t i = 0; i < lse.elements(); ++i)
        if (std::isinf(full_lse[i]))
          EXPECT_EQ(lse[i], full_lse[i]) << "row " << i;
        else
          EXPECT_NEAR(lse[i], full_lse[i], 1e-5 * (1 + std::fabs(full_lse[i]))) << "row " << i;
      out.take(); // the gradients read it
      EXPECT_STATUS_OK(attention_grad(s, dq.half, dk.half, dv.half, dout.half, q.half, k.half, v.half, added, out.half,
                                      lse, 0.3, causal));
      EXPECT_STATUS_OK(attention_grad(s, dq.full, dk.full, dv.full, dout.full, q.full, k.full, v.full, added, out.full,
                                      lse, 0.3, causal));
      dq.expect_rounded(p.roundings);
      dk.expect_rounded(p.roundings);
      dv.expect_rounded(p.roundings);
    }
}

/// Libraries multiply by weights, and in the gradient by slopes, of the stored type: of what is summed up, each number
/// is rounded once more, and results are as exact as several roundings of the largest.
TYPED_TEST(HalfTypes, AttentionByTheLibrary) {
  using H = TypeParam;
  test_stream s;
  std::unique_ptr<cuda::attention_library> library;
  if (const status opened = cuda::open_attention_library(s, library); !opened.is_ok())
    GTEST_SKIP() << opened.message();
  constexpr int roundings = 4;
  for (const bool causal : {false, true})
    for (const std::int64_t keys : {64, 128}) {
      const std::vector<int> order = {0, 2, 1, 3};
      const both<H> q({2, 4, 64, 64}, order), k({2, 2, keys, 64}, order), v({2, 2, keys, 64}, order),
          dout({2, 4, 64, 64}, order);
      both<H> out({2, 4, 64, 64}, order);
      const both<H> dq({2, 4, 64, 64}, order), dk({2, 2, keys, 64}, order), dv({2, 2, keys, 64}, order);
      const tensor lse({2, 4, 64}), full_lse({2, 4, 64});
      const auto compute = [&](bool is_gradient) {
        const view none;
        const attention_views views = {q.half,
                                       k.half,
                                       v.half,
                                       none,
                                       out.half,
                                       lse,
                                       is_gradient ? dout.half.v() : none,
                                       is_gradient ? dq.half.v() : none,
                                       is_gradient ? dk.half.v() : none,
                                       is_gradient ? dv.half.v() : none};
        attention_shape shape;
        ASSERT_TRUE(describe_attention(views, 0.3, causal, shape));
        std::unique_ptr<cuda::prepared_attention> prepared;
        const status made = library->prepare(shape, prepared);
        ASSERT_TRUE(made.is_ok()) << made.message();
        const test_memory workspace = allocate_zeros(std::max<std::int64_t>(prepared->workspace_bytes(), 1));
        EXPECT_STATUS_OK(prepared->run({{views.q.data, views.k.data, views.v.data, views.out.data, views.dout.data,
                                         views.dq.data, views.dk.data, views.dv.data},
                                        views.lse.data},
                                       workspace.get()));
        EXPECT_STATUS_OK(static_cast<stream &>(s).synchronize());
      };
      compute(false);
      EXPECT_STATUS_OK(attention(s, out.full, full_lse, q.full, k.full, v.full, view(), 0.3, causal));
      out.expect_rounded(roundings);
      expect_near(lse, full_lse.values(), noise);
      out.take(); // the gradients read it
      compute(true);
      EXPECT_STATUS_OK(attention_grad(s, dq.full, dk.full, dv.full, dout.full, q.full, k.full, v.full, view(), out.full,
                                      full_lse, 0.3, causal));
      dq.expect_rounded(roundings);
      dk.expect_rounded(roundings);
      dv.expect_rounded(roundings);
      // The same bits again.
      const auto bits = [&] {
        std::vector<float> all;
        for (const both<H> *each : {&dq, &dk, &dv})
          for (std::int64_t i = 0; i < each->half.elements(); ++i)
            all.push_back(static_cast<float>(each->half[i]));
        return all;
      };
      const std::vector<float> first = bits();
      compute(true);
      EXPECT_EQ(bits(), first);
    }
}

TYPED_TEST(HalfTypes, Convolutions) {
  using H = TypeParam;
  // Two groups, one stride, dilation and pad that differ from the others.
  const windows of = {{3, 2}, {2, 1}, {1, 2}, {1, 0}};
  const both<H> x({2, 6, 9, 10}), w({4, 3, 3, 2}), y({2, 4, 5, 8}), dx({2, 6, 9, 10}), dy({2, 4, 5, 8});
  const tensor dw({4, 3, 3, 2}), full_dw({4, 3, 3, 2});
  test_stream s;
  EXPECT_STATUS_OK(convolution(s, y.half, x.half, w.half, of, false));
  EXPECT_STATUS_OK(convolution(s, y.full, x.full, w.full, of, false));
  y.expect_rounded();
  EXPECT_STATUS_OK(convolution_data_grad(s, dx.half, dy.half, w.half, of, false));
  EXPECT_STATUS_OK(convolution_data_grad(s, dx.full, dy.full, w.full, of, false));
  dx.expect_rounded();
  EXPECT_STATUS_OK(convolution_weight_grad(s, dw, dy.half, x.half, of, false));
  EXPECT_STATUS_OK(convolution_weight_grad(s, full_dw, dy.full, x.full, of, false));
  expect_near(dw, full_dw.values(), noise);
}

TYPED_TEST(HalfTypes, Experts) {
  using H = TypeParam;
  const expert_layer of = {expert_activation::silu, true, false, 0};
  const both<H> x({50, 12}), weights({50, 2}), up({4, 18, 12}), down({4, 10, 9}), y({50, 10}), dy({50, 10}),
      dx({50, 12}), dweights({50, 2});
  const index_tensor choices({50, 2}, 0, 4);
  const tensor dup({4, 18, 12}), full_dup({4, 18, 12}), ddown({4, 10, 9}), full_ddown({4, 10, 9});
  test_stream s;
  EXPECT_STATUS_OK(experts(s, y.half, x.half, choices, weights.half, up.half, down.half, {}, {}, of));
  EXPECT_STATUS_OK(experts(s, y.full, x.full, choices, weights.full, up.full, down.full, {}, {}, of));
  y.expect_rounded();
  EXPECT_STATUS_OK(experts_grad(s, dx.half, dweights.half, dup, ddown, {}, dy.half, x.half, choices, weights.half,
                                up.half, down.half, {}, {}, of, false));
  EXPECT_STATUS_OK(experts_grad(s, dx.full, dweights.full, full_dup, full_ddown, {}, dy.full, x.full, choices,
                                weights.full, up.full, down.full, {}, {}, of, false));
  dx.expect_rounded();
  dweights.expect_rounded();
  expect_near(dup, full_dup.values(), noise);
  expect_near(ddown, full_ddown.values(), noise);
}

TYPED_TEST(HalfTypes, Pooling) {
  using H = TypeParam;
  const windows of = {{3, 2}, {2, 1}, {1, 2}, {1, 0}};
  const both<H> x({2, 4, 9, 10}), y({2, 4, 5, 8}), dx({2, 4, 9, 10}), dy({2, 4, 5, 8});
  test_stream s;
  EXPECT_STATUS_OK(max_pool(s, y.half, x.half, of));
  EXPECT_STATUS_OK(max_pool(s, y.full, x.full, of));
  y.expect_rounded();
  EXPECT_STATUS_OK(max_pool_grad(s, dx.half, dy.half, x.half, of, false));
  EXPECT_STATUS_OK(max_pool_grad(s, dx.full, dy.full, x.full, of, false));
  dx.expect_rounded();
  EXPECT_STATUS_OK(average_pool(s, y.half, x.half, of, true));
  EXPECT_STATUS_OK(average_pool(s, y.full, x.full, of, true));
  y.expect_rounded();
  EXPECT_STATUS_OK(average_pool_grad(s, dx.half, dy.half, of, true, false));
  EXPECT_STATUS_OK(average_pool_grad(s, dx.full, dy.full, of, true, false));
  dx.expect_rounded();
}

/// The columns of a row, and the elements between two rows. The columns are an odd number, whole packs of 8, packs and
/// a rest, more than 4 packs for each thread of a warp, and more than 8.
const std::pair<std::int64_t, std::int64_t> widths[] = {{67, 0}, {72, 0}, {83, 5}, {1032, 0}, {2056, 8}};

TYPED_TEST(HalfTypes, Norms) {
  using H = TypeParam;
  test_stream s;
  for (const auto &[n, gap] : widths) {
    const sizes shape = {3, 29, n};
    const both<H> x(shape, {1, 0, 2}, {}, gap), y(shape, {}, {}, gap), dy(shape, {}, {}, gap), dx(shape, {}, {}, gap),
        scale({n}), bias({n});
    const tensor mean({3, 29}), rstd({3, 29}), dscale({n}), dbias({n}), full_dscale({n}), full_dbias({n});
    EXPECT_STATUS_OK(layer_norm(s, y.half, mean, rstd, x.half, scale.half, bias.half, 1e-3));
    EXPECT_STATUS_OK(layer_norm(s, y.full, mean, rstd, x.full, scale.full, bias.full, 1e-3));
    y.expect_rounded();
    EXPECT_STATUS_OK(layer_norm_grad(s, dx.half, dscale, dbias, dy.half, x.half, scale.half, mean, rstd, {}, false));
    EXPECT_STATUS_OK(
        layer_norm_grad(s, dx.full, full_dscale, full_dbias, dy.full, x.full, scale.full, mean, rstd, {}, false));
    dx.expect_rounded();
    expect_near(dscale, full_dscale.values(), noise);
    expect_near(dbias, full_dbias.values(), noise);
    EXPECT_STATUS_OK(rms_norm(s, y.half, rstd, x.half, scale.half, 1e-3));
    EXPECT_STATUS_OK(rms_norm(s, y.full, rstd, x.full, scale.full, 1e-3));
    y.expect_rounded();
    EXPECT_STATUS_OK(rms_norm_grad(s, dx.half, dscale, dy.half, x.half, scale.half, rstd, {}, false));
    EXPECT_STATUS_OK(rms_norm_grad(s, dx.full, full_dscale, dy.full, x.full, scale.full, rstd, {}, false));
    dx.expect_rounded();
    expect_near(dscale, full_dscale.values(), noise);
  }
}

/// The norm reads the sum as it is stored.
TYPED_TEST(HalfTypes, NormsOfSums) {
  using H = TypeParam;
  test_stream s;
  for (const auto &[n, gap] : widths) {
    const sizes shape = {3, 29, n};
    const both<H> a(shape, {}, {}, gap), b(shape, {}, {0, 1}), c(shape, {1, 0, 2}, {}, gap), scale({n}), bias({n}),
        sum(shape, {}, {}, gap), y(shape, {}, {}, gap), want(shape, {}, {}, gap), dy(shape, {}, {}, gap),
        dx(shape, {}, {}, gap);
    const tensor mean({3, 29}), rstd({3, 29}), want_mean({3, 29}), want_rstd({3, 29}), dscale({n}), dbias({n});
    EXPECT_STATUS_OK(
        add_layer_norm(s, sum.half, y.half, mean, rstd, a.half, b.half, c.half, scale.half, bias.half, 1e-3));
    for (std::int64_t i = 0; i < sum.full.elements(); ++i)
      sum.full[i] = a.full[i] + b.full[i] + c.full[i];
    for (std::int64_t i = 0; i < sum.full.elements(); ++i)
      ASSERT_EQ(static_cast<float>(sum.half[i]), static_cast<float>(H(sum.full[i])));
    EXPECT_STATUS_OK(layer_norm(s, want.half, want_mean, want_rstd, sum.half, scale.half, bias.half, 1e-3));
    for (std::int64_t i = 0; i < y.half.elements(); ++i)
      ASSERT_EQ(static_cast<float>(y.half[i]), static_cast<float>(want.half[i]));
    EXPECT_STATUS_OK(add_rms_norm(s, sum.half, y.half, rstd, a.half, b.half, {}, scale.half, 1e-3));
    EXPECT_STATUS_OK(rms_norm(s, want.half, want_rstd, sum.half, scale.half, 1e-3));
    for (std::int64_t i = 0; i < y.half.elements(); ++i)
      ASSERT_EQ(static_cast<float>(y.half[i]), static_cast<float>(want.half[i]));
    // What is added is added to the gradient as it is stored.
    const auto expect_sum = [&] {
      for (std::int64_t i = 0; i < dx.half.elements(); ++i)
        ASSERT_EQ(static_cast<float>(dx.half[i]), static_cast<float>(H(static_cast<float>(want.half[i]) + c.full[i])));
    };
    EXPECT_STATUS_OK(layer_norm_grad(s, want.half, dscale, dbias, dy.half, a.half, scale.half, mean, rstd, {}, false));
    EXPECT_STATUS_OK(
        layer_norm_grad(s, dx.half, dscale, dbias, dy.half, a.half, scale.half, mean, rstd, c.half, false));
    expect_sum();
    EXPECT_STATUS_OK(rms_norm_grad(s, want.half, dscale, dy.half, a.half, scale.half, rstd, {}, false));
    EXPECT_STATUS_OK(rms_norm_grad(s, dx.half, dscale, dy.half, a.half, scale.half, rstd, c.half, false));
    expect_sum();
  }
}

TYPED_TEST(HalfTypes, Softmax) {
  test_stream s;
  for (const auto &[n, gap] : widths)
    for (const std::vector<int> &order : {std::vector<int>{}, std::vector<int>{1, 0}}) {
      both<TypeParam> x({31, n}, order, {}, gap), y({31, n}, {}, {}, gap), dy({31, n}, {}, {}, gap),
          dx({31, n}, {}, {}, gap);
      EXPECT_STATUS_OK(softmax(s, y.half, x.half));
      EXPECT_STATUS_OK(softmax(s, y.full, x.full));
      y.expect_rounded();
      y.take();
      EXPECT_STATUS_OK(softmax_grad(s, dx.half, y.half, dy.half));
      EXPECT_STATUS_OK(softmax_grad(s, dx.full, y.full, dy.full));
      dx.expect_rounded();
    }
}

TYPED_TEST(HalfTypes, CrossEntropy) {
  test_stream s;
  for (const auto &[n, gap] : widths) {
    const both<TypeParam> logits({6, 35, n}, {}, {}, gap), d({6, 35, n}, {}, {}, gap);
    const tensor lse({6, 35}), full_lse({6, 35}), sum({}), full_sum({}), count({}), dsum({});
    index_tensor labels({6, 35}, 0, n);
    labels[3] = -100;
    EXPECT_STATUS_OK(softmax_cross_entropy(s, sum, count, lse, logits.half, labels, -100));
    EXPECT_STATUS_OK(softmax_cross_entropy(s, full_sum, count, full_lse, logits.full, labels, -100));
    EXPECT_EQ(count[0], 209.0f);
    expect_near(sum, full_sum.values(), noise);
    expect_near(lse, full_lse.values(), noise);
    EXPECT_STATUS_OK(softmax_cross_entropy_grad(s, d.half, dsum, logits.half, labels, lse, -100));
    EXPECT_STATUS_OK(softmax_cross_entropy_grad(s, d.full, dsum, logits.full, labels, lse, -100));
    d.expect_rounded();
    EXPECT_STATUS_OK(softmax_cross_entropy_with_grad(s, full_sum, logits.half, dsum, labels, -100));
    EXPECT_EQ(full_sum[0], sum[0]);
    for (std::int64_t i = 0; i < d.half.elements(); ++i)
      ASSERT_EQ(logits.half[i].bits, d.half[i].bits) << "element " << i;
  }
}

TYPED_TEST(HalfTypes, RotaryAndDropout) {
  test_stream s;
  for (const std::int64_t n : {26, 32}) {
    const both<TypeParam> x({2, 5, 31, n}, {0, 2, 1, 3}), y({2, 5, 31, n}), cosine({31, n}), sine({31, n});
    for (const bool transposed : {false, true}) {
      EXPECT_STATUS_OK(rotary(s, y.half, x.half, cosine.half, sine.half, transposed));
      EXPECT_STATUS_OK(rotary(s, y.full, x.full, cosine.full, sine.full, transposed));
      y.expect_rounded();
    }
    const index_tensor keys({2}, -1000, 1000);
    EXPECT_STATUS_OK(dropout(s, y.half, x.half, keys, 0.3));
    EXPECT_STATUS_OK(dropout(s, y.full, x.full, keys, 0.3));
    y.expect_rounded();
  }
}

TYPED_TEST(HalfTypes, Reductions) {
  test_stream s;
  for (const bool accumulate : {false, true})
    for (const auto &[n, order] :
         {std::pair<std::int64_t, std::vector<int>>{300, {1, 0}}, {304, {1, 0}}, {300, {0, 1}}}) {
      const both<TypeParam> in({n, 48}, order), out({n});
      const tensor wide({n}), expected({n}), squares({}), full_squares({});
      EXPECT_STATUS_OK(copy(s, expected, wide));
      EXPECT_STATUS_OK(copy(s, full_squares, squares));
      EXPECT_STATUS_OK(reduce(s, out.half, in.half, 1, reduction::sum, accumulate));
      EXPECT_STATUS_OK(reduce(s, out.full, in.full, 1, reduction::sum, accumulate));
      out.expect_rounded();
      EXPECT_STATUS_OK(reduce(s, wide, in.half, 1, reduction::sum, accumulate));
      EXPECT_STATUS_OK(reduce(s, expected, in.full, 1, reduction::sum, accumulate));
      expect_near(wide, expected.values(), noise);
      EXPECT_STATUS_OK(square_sum(s, squares, in.half, accumulate));
      EXPECT_STATUS_OK(square_sum(s, full_squares, in.full, accumulate));
      expect_near(squares, full_squares.values(), noise);
    }
  const both<TypeParam> in({17, 129}), out({17});
  for (const reduction kind : {reduction::max, reduction::min}) {
    EXPECT_STATUS_OK(reduce(s, out.half, in.half, 1, kind, false));
    EXPECT_STATUS_OK(reduce(s, out.full, in.full, 1, kind, false));
    for (std::int64_t i = 0; i < 17; ++i)
      EXPECT_EQ(static_cast<float>(out.half[i]), out.full[i]);
  }
}

TYPED_TEST(HalfTypes, RowsByIndex) {
  using H = TypeParam;
  test_stream s;
  for (const std::int64_t n : {70, 72}) {
    const both<H> table({20, n}, {1, 0}), rows({20, n}), out({6, 50, n}), dout({6, 50, n}), dtable({20, n});
    const tensor wide({20, n}), expected({20, n});
    const index_tensor ids({6, 50}, 0, 20);
    for (const both<H> &from : {std::cref(table), std::cref(rows)}) {
      EXPECT_STATUS_OK(embedding(s, out.half, from.half, ids, view(), 0));
      for (std::int64_t i = 0; i < out.half.elements(); ++i)
        ASSERT_EQ(out.half[i].bits, from.half[ids[i / n] * n + i % n].bits);
    }
    EXPECT_STATUS_OK(embedding_grad(s, wide, ids, dout.half, view(), 0, false));
    EXPECT_STATUS_OK(embedding_grad(s, expected, ids, dout.full, view(), 0, false));
    expect_near(wide, expected.values(), noise);
    for (const bool accumulate : {false, true}) {
      EXPECT_STATUS_OK(scatter_add(s, dtable.half, ids, dout.half, 0, accumulate));
      EXPECT_STATUS_OK(scatter_add(s, dtable.full, ids, dout.full, 0, accumulate));
      dtable.expect_rounded(accumulate ? 2 : 1);
    }
  }
}

TYPED_TEST(HalfTypes, ElementsByIndex) {
  test_stream s;
  const both<TypeParam> in({40, 5, 60}, {2, 0, 1}), out({40, 7, 60}), back({40, 5, 60});
  const index_tensor indices({40, 7, 60}, -5, 5);
  EXPECT_STATUS_OK(gather_elements(s, out.half, in.half, indices, 1));
  EXPECT_STATUS_OK(gather_elements(s, out.full, in.full, indices, 1));
  for (std::int64_t i = 0; i < out.half.elements(); ++i)
    ASSERT_EQ(static_cast<float>(out.half[i]), out.full[i]);
  EXPECT_STATUS_OK(scatter_elements_add(s, back.half, indices, out.half, 1, true));
  EXPECT_STATUS_OK(scatter_elements_add(s, back.full, indices, out.full, 1, true));
  back.expect_rounded(7); // one for each element that is added
}

template <class H> struct weighted {
  static constexpr const char *name = "weighted";
  using outputs = type_list<H>;
  using inputs = type_list<H, float>;
  WINDLASS_FN static void apply(H &r0, H a0, float a1) { r0 = H(static_cast<float>(a0) * a1); }
};

TYPED_TEST(HalfTypes, Maps) {
  using H = TypeParam;
  test_stream s;
  for (const std::vector<int> &order : {std::vector<int>(), std::vector<int>{1, 0}}) {
    const both<H> x({33, 501}, order), y({33, 501});
    const tensor w({33, 501}, {}, 0, {0});
    EXPECT_STATUS_OK(map(s, weighted<H>(), {y.half}, {x.half, w}));
    for (std::int64_t i = 0; i < y.half.elements(); ++i)
      ASSERT_EQ(y.half[i].bits, H(x.full[i] * w[i]).bits) << i;
  }
}

} // namespace
} // namespace windlass::rt::testing
