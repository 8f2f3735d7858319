#include "windlass/Search/Solver.h"

#include "RandomProblem.h"

#include <gtest/gtest.h>

#include <random>

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
    // Every fourth search is stopped early.
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

/// The problem is so large that local search runs in rounds, whose solutions are merged.
TEST(Solver, ThreadsDoNotChangeTheAnswerOfALargeProblem) {
  std::mt19937_64 random(7);
  auto below = [&](uint64_t count) { return static_cast<int64_t>(random() % count); };
  constexpr int32_t kNodes = 2'000, kRows = 200, kLabels = 3;
  Problem problem;
  for (int32_t i = 0; i < kNodes; ++i) {
    int32_t begin = i * kRows / kNodes, end = std::min(kRows, begin + 1 + static_cast<int32_t>(below(20)));
    Node node{{below(100), below(100), below(100)}, {{begin, end, {below(100), below(100), below(100)}}}};
    problem.nodes.push_back(node);
  }
  for (int32_t k = 0; k < 50; ++k) {
    problem.tables.emplace_back();
    for (int32_t entry = 0; entry < kLabels * kLabels; ++entry)
      problem.tables.back().push_back(below(100));
  }
  for (int32_t i = 1; i < kNodes; ++i)
    for (int32_t far : {1, 7, 60})
      if (i >= far)
        problem.edges.push_back({i - far, i, static_cast<int32_t>(below(problem.tables.size()))});
  problem.capacity.assign(kRows, 9'000);
  SolveOptions options;
  options.workLimit = 200'000'000;
  int mergedTimes = 0;
  options.log = [&](const std::string &line) { mergedTimes += line.find("merged") != std::string::npos; };
  SolveResult one = solve(problem, options);
  EXPECT_GT(mergedTimes, 0);
  options.threads = 2;
  SolveResult two = solve(problem, options);
  ASSERT_TRUE(one.isFeasible());
  Evaluation value = evaluate(problem, one.solution);
  EXPECT_TRUE(value.isFeasible());
  EXPECT_EQ(value.cost, one.cost);
  EXPECT_EQ(one.solution, two.solution);
  EXPECT_EQ(one.bound, two.bound);
}

TEST(Solver, EndsAtTheCutoff) {
  int64_t open = 0;
  for (uint64_t seed = 0; seed < 600; ++seed) {
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
