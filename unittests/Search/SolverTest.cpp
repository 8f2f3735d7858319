#include "windlass/Search/Solver.h"

#include "RandomProblem.h"

#include <gtest/gtest.h>

using namespace windlass::search;

namespace {

SolveResult solveWith(const Problem &problem, int64_t work, int threads = 1) {
  SolveOptions options;
  options.workLimit = work;
  options.threads = threads;
  return solve(problem, options);
}

TEST(Solver, BoundAndCostEncloseTheOptimumOfRandomProblems) {
  constexpr int64_t kDraws = 10'000;
  int64_t proven = 0, feasible = 0;
  for (int64_t seed = 0; seed < kDraws; ++seed) {
    Problem problem = makeRandomProblem(seed);
    int64_t optimum = tryEverything(problem);
    // Every fourth is stopped early.
    SolveResult result = solveWith(problem, seed % 4 == 3 ? 3'000 : 20'000'000);
    ASSERT_LE(result.bound, optimum) << "seed " << seed;
    ASSERT_GE(result.cost, optimum) << "seed " << seed;
    if (result.isFeasible()) {
      Evaluation value = evaluate(problem, result.solution);
      ASSERT_TRUE(value.isFeasible()) << "seed " << seed;
      ASSERT_EQ(value.cost, result.cost) << "seed " << seed;
    }
    if (result.isOptimal())
      ASSERT_EQ(result.cost, optimum) << "seed " << seed;
    if (seed % 4 != 3)
      ASSERT_EQ(result.isOptimal(), optimum < kForbidden) << "seed " << seed << ": not closed";
    proven += result.isOptimal();
    feasible += optimum < kForbidden;
  }
  // The draws are of both kinds.
  EXPECT_GT(feasible, kDraws / 4);
  EXPECT_LT(feasible, kDraws);
  EXPECT_GE(proven, feasible * 3 / 4);
}

TEST(Solver, ThreadsDoNotChangeTheAnswer) {
  for (uint64_t seed = 0; seed < 200; ++seed) {
    Problem problem = makeRandomProblem(seed);
    SolveResult one = solveWith(problem, 200'000), two = solveWith(problem, 200'000, 2),
                three = solveWith(problem, 200'000, 3);
    ASSERT_EQ(one.solution, two.solution) << "seed " << seed;
    ASSERT_EQ(one.bound, two.bound) << "seed " << seed;
    ASSERT_EQ(one.solution, three.solution) << "seed " << seed;
    ASSERT_EQ(one.bound, three.bound) << "seed " << seed;
  }
}

TEST(Solver, EndsAtTheCutoff) {
  int64_t open = 0;
  for (uint64_t seed = 0; seed < 500; ++seed) {
    Problem problem = makeRandomProblem(seed);
    int64_t optimum = tryEverything(problem);
    SolveOptions options;
    options.cutoff = optimum / 2;
    SolveResult result = solve(problem, options);
    ASSERT_GE(result.bound, options.cutoff) << "seed " << seed;
    ASSERT_LE(result.bound, optimum) << "seed " << seed;
    ASSERT_GE(result.cost, optimum) << "seed " << seed;
    open += result.bound < optimum;
  }
  EXPECT_GT(open, 50);
}

TEST(Solver, SaysThatNothingFits) {
  Problem problem;
  problem.nodes = {{{1, 2}, {{0, 1, {5, 7}}}}, {{1, 2}, {{0, 1, {6, 5}}}}};
  problem.capacity = {9};
  SolveResult result = solveWith(problem, 1'000'000);
  EXPECT_FALSE(result.isFeasible());
  EXPECT_EQ(result.bound, kForbidden);
  problem.capacity = {10};
  result = solveWith(problem, 1'000'000);
  EXPECT_EQ(result.solution, (Solution{0, 1}));
  EXPECT_EQ(result.cost, 3);
  EXPECT_TRUE(result.isOptimal());
}

/// Two streams beside each other cost as much as the busier one.
TEST(Solver, BalancesStreams) {
  Problem problem;
  for (int i = 0; i < 4; ++i)
    problem.nodes.push_back({{0, 0}, {{0, 1, {10, 0}}, {1, 2, {0, 10}}}});
  problem.load = {0, 0};
  problem.windowEnd = {2};
  SolveResult result = solveWith(problem, 10'000'000);
  EXPECT_EQ(result.cost, 20);
  EXPECT_TRUE(result.isOptimal());
}

} // namespace
