#include "testing.h"

#include <thread>

namespace windlass::rt::testing {
namespace {

struct problem {
  sizes batch, m, k, n;
  std::vector<int> order_out, order_a, order_b;
  std::int64_t gap = 0;
  std::vector<int> repeated_a = {}, repeated_b = {};
};

sizes joined(std::initializer_list<sizes> lists) {
  sizes result;
  for (const sizes &list : lists)
    result.insert(result.end(), list.begin(), list.end());
  return result;
}

void check(const problem &p, bool accumulate, std::int32_t threads) {
  test_stream s(threads);
  const tensor a(joined({p.batch, p.m, p.k}), p.order_a, p.gap, p.repeated_a);
  const tensor b(joined({p.batch, p.k, p.n}), p.order_b, p.gap, p.repeated_b);
  const tensor out(joined({p.batch, p.m, p.n}), p.order_out, p.gap);
  std::vector<double> expected = out.values();
  const std::int64_t batches = product(p.batch), m = product(p.m), k = product(p.k), n = product(p.n);
  for (std::int64_t g = 0; g < batches; ++g)
    for (std::int64_t i = 0; i < m; ++i)
      for (std::int64_t j = 0; j < n; ++j) {
        double sum = 0;
        for (std::int64_t l = 0; l < k; ++l)
          sum += static_cast<double>(a[(g * m + i) * k + l]) * static_cast<double>(b[(g * k + l) * n + j]);
        double &e = expected[static_cast<std::size_t>((g * m + i) * n + j)];
        e = (accumulate ? e : 0.0) + sum;
      }
  const auto batch_rank = static_cast<std::int32_t>(p.batch.size()), contract = static_cast<std::int32_t>(p.k.size());
  EXPECT_LE(matmul_scratch_bytes(out, a, b, batch_rank, contract) * threads, (1 << 18) * 8);
  EXPECT_STATUS_OK(matmul(s, out, a, b, batch_rank, contract, accumulate));
  expect_near(out, expected, 2e-6);
}

void check_all(const problem &p) {
  for (const bool accumulate : {false, true})
    for (const std::int32_t threads : {1, 2, 3})
      check(p, accumulate, threads);
}

TEST(Matmul, Plain) { check_all({{}, {37}, {53}, {29}, {}, {}, {}}); }
TEST(Matmul, LargeEnoughForATeam) { check_all({{}, {130}, {97}, {203}, {}, {}, {}}); }
TEST(Matmul, RowAndColumn) {
  check_all({{}, {1}, {31}, {17}, {}, {}, {}});
  check_all({{}, {31}, {17}, {1}, {}, {}, {}});
  check_all({{}, {9}, {1}, {7}, {}, {}, {}});
  check_all({{}, {1}, {1}, {1}, {}, {}, {}});
}
TEST(Matmul, Transposed) {
  check_all({{}, {37}, {53}, {29}, {}, {1, 0}, {}});
  check_all({{}, {37}, {53}, {29}, {}, {}, {1, 0}});
  check_all({{}, {37}, {53}, {29}, {1, 0}, {1, 0}, {1, 0}});
}
TEST(Matmul, WithGaps) { check_all({{}, {37}, {53}, {29}, {}, {}, {}, 5}); }
TEST(Matmul, Batches) { check_all({{3, 5}, {11}, {13}, {7}, {}, {}, {}}); }
TEST(Matmul, HeadsInsideOfRows) {
  // [batch, heads, tokens, width] as a permuted [batch, tokens, heads, width].
  check_all({{2, 3}, {11}, {8}, {11}, {}, {0, 2, 1, 3}, {0, 3, 1, 2}});
  check_all({{2, 3}, {11}, {11}, {8}, {0, 2, 1, 3}, {}, {0, 2, 1, 3}});
}
TEST(Matmul, SeveralContractedDimensions) {
  check_all({{}, {6}, {4, 9}, {10}, {}, {1, 2, 0}, {}});
  check_all({{}, {6}, {4, 9}, {10}, {}, {2, 0, 1}, {1, 0, 2}});
}
TEST(Matmul, SeveralRowAndColumnDimensions) {
  check_all({{}, {4, 5}, {9}, {3, 7}, {}, {}, {}});
  check_all({{}, {4, 5}, {9}, {3, 7}, {1, 2, 0, 3}, {1, 0, 2}, {1, 0, 2}});
}
TEST(Matmul, RepeatedWeightsOfABatch) {
  check_all({{3}, {4}, {9}, {7}, {}, {}, {}, 0, {}, {0}});
  check_all({{3}, {4}, {9}, {7}, {}, {}, {}, 0, {0}, {}});
}
TEST(Matmul, NoUnitStride) {
  // The fastest dim of each operand is its batch, so that rows and columns both have gaps.
  check_all({{3}, {11}, {13}, {7}, {1, 2, 0}, {1, 2, 0}, {1, 2, 0}});
  check_all({{}, {11}, {13}, {7}, {}, {}, {}, 0, {1}, {}});
}
TEST(Matmul, NothingToContract) { check_all({{}, {3}, {0}, {4}, {}, {}, {}}); }
TEST(Matmul, OuterProduct) { check_all({{}, {5}, {}, {4}, {}, {}, {}}); }

TEST(Matmul, RanksAsThreadsCallItAtOnce) {
  for (const std::int32_t team : {1, 2}) {
    const tensor a({150, 170}), b({170, 130}), expected({150, 130});
    {
      test_stream s(team);
      EXPECT_STATUS_OK(matmul(s, expected, a, b, 0, 1, false));
    }
    const std::vector<double> values = expected.values();
    std::vector<tensor> results;
    for (int rank = 0; rank < 8; ++rank)
      results.emplace_back(sizes{150, 130});
    std::vector<std::thread> ranks;
    for (const tensor &out : results)
      ranks.emplace_back([&a, &b, &out, team] {
        test_stream s(team);
        for (int i = 0; i < 10; ++i)
          EXPECT_STATUS_OK(matmul(s, out, a, b, 0, 1, false));
      });
    for (std::thread &rank : ranks)
      rank.join();
    for (const tensor &out : results)
      expect_near(out, values, 0); // the same bits
  }
}

TEST(Matmul, RefusesSizesThatDisagree) {
  test_stream s;
  const tensor a({3, 4}), b({5, 6}), out({3, 6});
  EXPECT_EQ(matmul(s, out, a, b, 0, 1, false).code(), status_code::internal);
}

} // namespace
} // namespace windlass::rt::testing
