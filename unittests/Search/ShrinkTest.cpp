#include "windlass/Search/Shrink.h"

#include "RandomProblem.h"

#include <gtest/gtest.h>

using namespace windlass::search;

namespace {

TEST(Shrink, KeepsTheOptimumAndItsSolution) {
  for (uint64_t seed = 0; seed < 2'000; ++seed) {
    Problem problem = makeRandomProblem(seed);
    int64_t optimum = tryEverything(problem);
    Shrunk shrunk = shrink(problem);
    if (shrunk.isInfeasible) {
      ASSERT_EQ(optimum, kForbidden) << "seed " << seed;
      continue;
    }
    Solution best;
    ASSERT_EQ(tryEverything(shrunk.problem, &best), optimum) << "seed " << seed;
    if (optimum == kForbidden)
      continue;
    Evaluation value = evaluate(problem, shrunk.expand(best));
    ASSERT_TRUE(value.isFeasible()) << "seed " << seed;
    ASSERT_EQ(value.cost, optimum) << "seed " << seed;
    ASSERT_EQ(shrunk.contract(shrunk.expand(best)), best) << "seed " << seed;
  }
}

/// A chain whose edges are bijections is one decision.
TEST(Shrink, JoinsBijections) {
  Problem problem;
  constexpr int64_t no = kForbidden;
  for (int i = 0; i < 5; ++i)
    problem.nodes.push_back({{3 * i, 5, 7 - i}, {{i, i + 2, {1, 4 + i, 9}}}});
  problem.tables = {{no, 2, no, no, no, 0, 1, no, no}};
  for (int32_t i = 0; i < 4; ++i)
    problem.edges.push_back({i, i + 1, 0});
  problem.capacity.assign(6, 13);
  Shrunk shrunk = shrink(problem);
  EXPECT_LE(shrunk.problem.nodes.size(), 1u);
  EXPECT_TRUE(shrunk.problem.edges.empty());
}

TEST(Shrink, DropsRowsThatOthersImply) {
  Problem problem;
  // Everything that lives in row 0 lives in row 1; row 3 cannot be exceeded; rows 4 and 5 are equal.
  problem.nodes = {{{0, 9}, {{0, 3, {9, 0}}}}, {{0, 8}, {{1, 2, {7, 0}}, {3, 4, {2, 0}}}}, {{0, 5}, {{2, 6, {8, 0}}}}};
  problem.capacity = {8, 8, 8, 20, 7, 7};
  Shrunk shrunk = shrink(problem);
  EXPECT_EQ(shrunk.problem.capacity.size(), 3u);
  EXPECT_EQ(tryEverything(shrunk.problem), tryEverything(problem));
}

TEST(Shrink, SeesThatNothingIsAllowed) {
  Problem problem;
  problem.nodes = {{{0, 0}, {}}, {{0, 0}, {}}};
  problem.tables = {{kForbidden, kForbidden, kForbidden, kForbidden}};
  problem.edges = {{0, 1, 0}};
  EXPECT_TRUE(shrink(problem).isInfeasible);
}

} // namespace
