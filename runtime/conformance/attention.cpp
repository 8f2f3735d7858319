#include "testing.h"

#include <limits>

namespace windlass::rt::testing {
namespace {

struct problem {
  std::int64_t batch, heads, kv_heads, queries, keys, width, value_width;
  bool causal, masked;
  std::vector<int> order = {0, 2, 1, 3}; // tokens before heads in memory
};

constexpr double infinity = std::numeric_limits<double>::infinity();

void check(const problem &p, std::int32_t threads) {
  const std::int64_t group = p.heads / p.kv_heads, T = p.queries, S = p.keys, D = p.width, E = p.value_width;
  const tensor q({p.batch, p.heads, T, D}, p.order), k({p.batch, p.kv_heads, S, D}, p.order),
      v({p.batch, p.kv_heads, S, E}, p.order), dout({p.batch, p.heads, T, E}, p.order);
  const tensor out({p.batch, p.heads, T, E}, p.order), lse({p.batch, p.heads, T}), dq({p.batch, p.heads, T, D}),
      dk({p.batch, p.kv_heads, S, D}, p.order), dv({p.batch, p.kv_heads, S, E}, p.order);
  const tensor mask({p.batch, p.heads, T, S}, {}, 0, {1});
  test_stream s(threads, std::max<std::int64_t>(1 << 21, attention_grad_scratch_bytes(q, k, threads)));
  if (p.masked) // the first query of all sees nothing
    for (std::int64_t j = 0; j < S; ++j)
      mask[j] = -std::numeric_limits<float>::infinity();
  const double scale = 0.3;

  std::vector<double> e_out(static_cast<std::size_t>(out.elements())), e_lse(static_cast<std::size_t>(lse.elements())),
      e_dq(static_cast<std::size_t>(dq.elements())), e_dk(static_cast<std::size_t>(dk.elements())),
      e_dv(static_cast<std::size_t>(dv.elements()));
  const auto at = [](std::vector<double> &x, std::int64_t i) -> double & { return x[static_cast<std::size_t>(i)]; };
  for (std::int64_t b = 0; b < p.batch; ++b)
    for (std::int64_t h = 0; h < p.heads; ++h)
      for (std::int64_t t = 0; t < T; ++t) {
        const std::int64_t row = (b * p.heads + h) * T + t, kv = b * p.kv_heads + h / group;
        std::vector<double> w(static_cast<std::size_t>(S), -infinity);
        double most = -infinity, sum = 0;
        for (std::int64_t j = 0; j < S; ++j) {
          if (p.causal && j > t + S - T)
            continue;
          double x = 0;
          for (std::int64_t d = 0; d < D; ++d)
            x += double(q[row * D + d]) * double(k[(kv * S + j) * D + d]);
          at(w, j) = x * scale + (p.masked ? double(mask[row * S + j]) : 0.0);
          most = std::max(most, at(w, j));
        }
        for (double &x : w)
          sum += x = most == -infinity ? 0.0 : std::exp(x - most);
        at(e_lse, row) = most == -infinity ? -infinity : most + std::log(sum);
        double delta = 0;
        for (std::int64_t j = 0; j < S; ++j) {
          at(w, j) /= sum == 0 ? 1 : sum;
          for (std::int64_t e = 0; e < E; ++e) {
            at(e_out, row * E + e) += at(w, j) * double(v[(kv * S + j) * E + e]);
            delta += at(w, j) * double(v[(kv * S + j) * E + e]) * double(dout[row * E + e]);
          }
        }
        for (std::int64_t j = 0; j < S; ++j) {
          double dw = 0;
          for (std::int64_t e = 0; e < E; ++e) {
            dw += double(dout[row * E + e]) * double(v[(kv * S + j) * E + e]);
            at(e_dv, (kv * S + j) * E + e) += at(w, j) * double(dout[row * E + e]);
          }
          const double ds = scale * at(w, j) * (dw - delta);
          for (std::int64_t d = 0; d < D; ++d) {
            at(e_dq, row * D + d) += ds * double(k[(kv * S + j) * D + d]);
            at(e_dk, (kv * S + j) * D + d) += ds * double(q[row * D + d]);
          }
        }
      }
  const view bias = p.masked ? mask.v() : view();
  EXPECT_STATUS_OK(attention(s, out, lse, q, k, v, bias, scale, p.causal));
  expect_near(out, e_out, 3e-6);
  expect_near(lse, e_lse, 3e-6);
  EXPECT_STATUS_OK(attention_grad(s, dq, dk, dv, dout, q, k, v, bias, out, lse, scale, p.causal));
  expect_near(dq, e_dq, 1e-5);
  expect_near(dk, e_dk, 1e-5);
  expect_near(dv, e_dv, 1e-5);
}

void check_all(problem p) {
  for (const bool causal : {false, true})
    for (const bool masked : {false, true})
      for (const std::int32_t threads : {1, 3}) {
        p.causal = causal;
        p.masked = masked;
        check(p, threads);
      }
}

TEST(Attention, Square) { check_all({2, 3, 3, 19, 19, 8, 8, false, false}); }
TEST(Attention, SeveralBlocks) { check_all({1, 2, 2, 150, 150, 16, 16, false, false}); }
TEST(Attention, GroupedHeadsOfSeveralBlocks) { check_all({2, 4, 2, 77, 77, 40, 40, false, false}); }
TEST(Attention, MoreKeysThanQueriesOfSeveralBlocks) { check_all({1, 2, 1, 45, 150, 20, 33, false, false}); }
TEST(Attention, NoUnitStrideOfSeveralBlocks) { check_all({1, 2, 2, 50, 50, 18, 18, false, false, {2, 3, 0, 1}}); }
// More keys than a thread keeps packed: by products of any size, as without AVX-512.
TEST(Attention, ManyKeysInSeveralBlocks) {
  if (detail::backend_has_device)
    GTEST_SKIP() << "one way for all sizes";
  check({1, 2, 1, 130, 33000, 1, 2, true, false}, 2);
  check({1, 1, 1, 130, 33000, 2, 1, false, true}, 1);
}
TEST(Attention, GroupedHeads) { check_all({2, 6, 2, 13, 13, 4, 4, false, false}); }
TEST(Attention, MoreKeysThanQueries) { check_all({1, 2, 1, 7, 21, 5, 9, false, false}); }
TEST(Attention, FewerKeysThanQueries) { check_all({1, 2, 1, 140, 9, 5, 3, false, false}); }
TEST(Attention, NoUnitStride) { check_all({2, 3, 3, 11, 11, 4, 4, false, false, {2, 3, 0, 1}}); }

} // namespace
} // namespace windlass::rt::testing
