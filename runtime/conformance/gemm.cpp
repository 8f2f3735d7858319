// All implementations of GEMM, of which matmul uses those that the machine can run.
#include "gemm.h"
#include "gemm_amx.h"
#include "gemm_avx512.h"
#include "openblas.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>
#include <vector>

namespace windlass::rt::cpu {
namespace {

enum class order { rows, columns, neither };

/// A matrix inside a larger buffer whose other values are marked.
struct stored {
  static constexpr float mark = 12345;
  std::vector<float> values;
  matrix m;

  stored(std::int64_t rows, std::int64_t columns, order o, std::mt19937 &random) {
    const std::int64_t gap = 3;
    const std::int64_t row_stride = o == order::rows ? columns + gap : o == order::columns ? 1 : 2 * columns + gap;
    const std::int64_t column_stride = o == order::rows ? 1 : o == order::columns ? rows + gap : 2;
    values.assign(static_cast<std::size_t>(rows * row_stride + columns * column_stride + 64), mark);
    m = {values.data(), rows, columns, row_stride, column_stride};
    std::uniform_real_distribution<float> number(-1, 1);
    for (std::int64_t i = 0; i < rows; ++i)
      for (std::int64_t j = 0; j < columns; ++j)
        at(i, j) = number(random);
  }
  float &at(std::int64_t i, std::int64_t j) { return m.data[i * m.row_stride + j * m.column_stride]; }
};

using gemm_function = void (*)(const matrix &, const matrix &, const matrix &, float, float);

void check(gemm_function multiply, std::int64_t m, std::int64_t n, std::int64_t k, order of_c, order of_a, order of_b,
           float alpha, float beta) {
  SCOPED_TRACE(::testing::Message() << m << " x " << n << " x " << k << ", orders " << static_cast<int>(of_c)
                                    << static_cast<int>(of_a) << static_cast<int>(of_b) << ", beta " << beta);
  std::mt19937 random(static_cast<unsigned>(m * 10007 + n * 101 + k));
  stored a(m, k, of_a, random), b(k, n, of_b, random), c(m, n, of_c, random);
  stored expected = c;
  expected.m.data = expected.values.data();
  for (std::int64_t i = 0; i < m; ++i)
    for (std::int64_t j = 0; j < n; ++j) {
      double sum = 0;
      for (std::int64_t l = 0; l < k; ++l)
        sum += static_cast<double>(a.at(i, l)) * static_cast<double>(b.at(l, j));
      sum = alpha * sum + (beta == 0.0f ? 0.0 : static_cast<double>(beta) * static_cast<double>(c.at(i, j)));
      expected.at(i, j) = static_cast<float>(sum);
      if (beta == 0.0f) // must not be read
        c.at(i, j) = std::numeric_limits<float>::quiet_NaN();
    }
  multiply(c.m, a.m, b.m, alpha, beta);
  const double bound = 1e-6 * std::sqrt(static_cast<double>(k) + 1);
  for (std::size_t i = 0; i < c.values.size(); ++i)
    ASSERT_NEAR(c.values[i], expected.values[i], bound) << "at position " << i;
}

void check_all(gemm_function multiply) {
  // On both sides of the borders of lanes, tiles and blocks.
  for (const std::int64_t m : {1, 14, 15, 37})
    for (const std::int64_t n : {1, 16, 31, 33, 70})
      for (const std::int64_t k : {1, 16, 19, 40})
        for (const order of_c : {order::rows, order::columns, order::neither})
          for (const order of_a : {order::rows, order::columns, order::neither})
            for (const order of_b : {order::rows, order::columns, order::neither})
              check(multiply, m, n, k, of_c, of_a, of_b, 0.75f, (m + n + k) % 2 == 0 ? 0.0f : 0.5f);
  for (const order o : {order::rows, order::columns, order::neither}) {
    check(multiply, 300, 65, 530, order::rows, o, o, 1.0f, 1.0f);
    check(multiply, 1050, 17, 20, order::rows, o, o, 1.0f, 0.5f);
    check(multiply, 17, 1060, 40, order::rows, o, o, 1.0f, 0.0f);
  }
  for (const float beta : {0.0f, 0.5f})
    check(multiply, 5, 40, 0, order::rows, order::rows, order::rows, 1.0f, beta);
}

TEST(Gemm, Amx) {
  if (!amx::is_supported())
    GTEST_SKIP() << "the processor has no AMX, or the system does not let it be used";
  check_all(amx::multiply);
  check(amx::multiply, 1056, 272, 1100, order::rows, order::rows, order::rows, 1.0f, 1.0f);
  check(amx::multiply, 64, 300, 2100, order::rows, order::columns, order::columns, 1.0f, 0.0f);
}

/// The mean relative error of sums of `depth` positive products, where nothing cancels, against double.
double mean_error(gemm_function multiply, std::int64_t depth) {
  constexpr std::int64_t size = 64;
  std::mt19937 random(static_cast<unsigned>(depth));
  stored a(size, depth, order::rows, random), b(depth, size, order::rows, random), c(size, size, order::rows, random);
  double sum = 0;
  for (stored *s : {&a, &b})
    for (float &x : s->values)
      x = std::abs(x);
  multiply(c.m, a.m, b.m, 1.0f, 0.0f);
  for (std::int64_t i = 0; i < size; ++i)
    for (std::int64_t j = 0; j < size; ++j) {
      double exact = 0;
      for (std::int64_t k = 0; k < depth; ++k)
        exact += static_cast<double>(a.at(i, k)) * static_cast<double>(b.at(k, j));
      sum += std::abs(static_cast<double>(c.at(i, j)) - exact) / exact / (size * size);
    }
  return sum;
}

// Six products of bf16 may be worse than one of f32 by half of the last place at most.
TEST(Gemm, AmxIsAsExactAsF32) {
  if (!amx::is_supported() || !avx512::is_supported())
    GTEST_SKIP() << "the processor has no AMX, or the system does not let it be used";
  for (const std::int64_t depth : {32, 64, 256, 768, 4096}) {
    EXPECT_LE(mean_error(amx::multiply, depth), mean_error(avx512::multiply, depth) + 0x1p-24) << depth;
  }
}

TEST(Gemm, AmxPartsAreExact) {
  if (!amx::is_supported())
    GTEST_SKIP() << "the processor has no AMX, or the system does not let it be used";
  // Times 1, all 24 bits of a number arrive, the largest float's too.
  std::mt19937 random(1);
  stored a(32, 32, order::rows, random), b(32, 32, order::rows, random), c(32, 32, order::rows, random);
  a.at(3, 4) = std::numeric_limits<float>::max();
  a.at(4, 3) = -0x1.fffffep-90f;
  for (std::int64_t i = 0; i < 32; ++i)
    for (std::int64_t j = 0; j < 32; ++j)
      b.at(i, j) = i == j ? 1.0f : 0.0f;
  amx::multiply(c.m, a.m, b.m, 1.0f, 0.0f);
  for (std::int64_t i = 0; i < 32; ++i)
    for (std::int64_t j = 0; j < 32; ++j)
      EXPECT_EQ(c.at(i, j), a.at(i, j));
  a.at(0, 0) = std::numeric_limits<float>::quiet_NaN();
  a.at(1, 0) = std::numeric_limits<float>::infinity();
  amx::multiply(c.m, a.m, b.m, 1.0f, 0.0f);
  EXPECT_TRUE(std::isnan(c.at(0, 0)));
  EXPECT_FALSE(std::isfinite(c.at(1, 0)));
  EXPECT_EQ(c.at(2, 0), a.at(2, 0));
}

TEST(Gemm, Avx512) {
  if (!avx512::is_supported())
    GTEST_SKIP() << "the processor has no AVX-512";
  check_all(avx512::multiply);
}

TEST(Gemm, OpenBlas) {
  ASSERT_TRUE(openblas::load().is_ok()) << openblas::load().message();
  check_all(openblas::multiply);
}

} // namespace
} // namespace windlass::rt::cpu
