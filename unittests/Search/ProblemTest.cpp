#include "windlass/Search/Problem.h"

#include <gtest/gtest.h>

using namespace windlass::search;

namespace {

Problem makeProblem() {
  Problem problem;
  problem.nodes = {{{1, 2}, {{0, 2, {10, 20}}}}, {{3, 4, 5}, {{1, 3, {1, 2, 3}}, {3, 4, {7, 0, 0}}}}};
  problem.edges = {{0, 1, 0}, {1, 0, 1}, {0, 0, 2}};
  problem.tables = {{0, 1, 2, 10, 11, 12}, {100, 200, 300, 400, 500, 600}, {0, 0, 0, 1000}};
  problem.capacity = {20, 22, 3};
  problem.load = {4, 5};
  problem.windowEnd = {2};
  problem.constant = 10'000;
  return problem;
}

TEST(Problem, EvaluatesNodesEdgesAndWindows) {
  // Nodes 2 + 5, edges 12 + 600 + 1000, the busier stream 5.
  Evaluation value = evaluate(makeProblem(), {1, 2});
  EXPECT_EQ(value.cost, 10'000 + 7 + 1612 + 5);
  EXPECT_EQ(value.excess, 1);
  EXPECT_FALSE(value.isFeasible());
  // Nodes 1 + 3, edges 0 + 100 + 0, the first stream 4 + 7.
  value = evaluate(makeProblem(), {0, 0});
  EXPECT_EQ(value.cost, 10'000 + 4 + 100 + 11);
  EXPECT_EQ(value.excess, -2);
  EXPECT_TRUE(value.isFeasible());
}

TEST(Problem, IntervalsAreHalfOpen) {
  EXPECT_EQ(rowUsage(makeProblem(), {1, 2}), (std::vector<int64_t>{20, 23, 3, 0, 0}));
  EXPECT_EQ(rowUsage(makeProblem(), {0, 0}), (std::vector<int64_t>{10, 11, 1, 7, 0}));
}

TEST(Problem, SumsStopAtWhatIsNotAllowed) {
  Problem problem = makeProblem();
  problem.tables[0].assign(6, kForbidden);
  problem.tables[1].assign(6, kForbidden);
  EXPECT_EQ(evaluate(problem, {0, 0}).cost, kForbidden);
  EXPECT_FALSE(evaluate(problem, {0, 0}).isFeasible());
}

} // namespace
