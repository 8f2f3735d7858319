// Both implementations of GEMM, of which matmul uses one per machine.
#include "gemm.h"
#include "gemm_avx512.h"
#include "openblas.h"

#include "windlass/rt/detail/instructions.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>
#include <vector>

#if defined(_OPENMP)
#include <omp.h>
#endif

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

TEST(Gemm, Avx512) {
  if (!detail::uses_avx512())
    GTEST_SKIP() << "the processor has no AVX-512, or is not to use it";
  check_all(avx512::multiply);
}

#if defined(_OPENMP)
/// The size of the team before `main`, which loads the library.
const int team_at_start = omp_get_max_threads();

TEST(Gemm, OpenBlasLeavesTheTeamAsItIs) {
  ASSERT_TRUE(openblas::load().is_ok()) << openblas::load().message();
  EXPECT_EQ(omp_get_max_threads(), team_at_start);
}
#endif

TEST(Gemm, OpenBlas) {
  ASSERT_TRUE(openblas::load().is_ok()) << openblas::load().message();
  check_all(openblas::multiply);
}

} // namespace
} // namespace windlass::rt::cpu
