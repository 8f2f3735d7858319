#include "../../lib/Search/Merge.h"

#include "RandomProblem.h"

#include <gtest/gtest.h>

#include <random>

using namespace windlass::search;

namespace {

std::vector<Incumbent> drawSolutions(const Problem &problem, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<Incumbent> found;
  for (int draw = 0; draw < 50; ++draw) {
    Solution solution;
    for (const Node &node : problem.nodes)
      solution.push_back(static_cast<int32_t>(random() % node.costs.size()));
    Incumbent one;
    one.offer(problem, solution);
    if (one.cost < kForbidden)
      found.push_back(one);
  }
  return found;
}

/// The best combination of parts of a few solutions costs at most as much as the best of these, and has labels of these
/// only.
TEST(Merge, IsTheProblemOfTheirLabels) {
  int merged = 0, better = 0;
  for (uint64_t seed = 0; seed < 500; ++seed) {
    Problem problem = makeRandomProblem(seed);
    std::vector<Incumbent> solutions = drawSolutions(problem, seed);
    Pool pool;
    int64_t least = kForbidden;
    for (const Incumbent &one : solutions) {
      pool.add(one);
      least = std::min(least, one.cost);
    }
    std::optional<Shrunk> shrunk = pool.merge(problem, 100);
    if (!shrunk)
      continue;
    ++merged;
    ASSERT_FALSE(shrunk->isInfeasible);
    Solution best;
    int64_t cost = tryEverything(shrunk->problem, &best);
    ASSERT_LE(cost, least) << "seed " << seed;
    better += cost < least;
    Solution labels = shrunk->expand(best);
    EXPECT_EQ(evaluate(problem, labels).cost, cost) << "seed " << seed;
    for (size_t i = 0; i < labels.size(); ++i)
      EXPECT_TRUE(std::any_of(solutions.begin(), solutions.end(),
                              [&](const Incumbent &one) { return one.labels[i] == labels[i]; }))
          << "seed " << seed;
    EXPECT_FALSE(pool.merge(problem, 100)) << "nothing was added since";
  }
  EXPECT_GT(merged, 100);
  EXPECT_GT(better, 20);
}

TEST(Merge, TakesTheBestOnlyWhereAllAreTooMany) {
  // Edges that are no sums, so that no node can be shrunk away; each solution brings labels of its own.
  Problem problem;
  std::mt19937_64 random(1);
  constexpr int32_t kNodes = 12, kLabels = 8;
  for (int32_t i = 0; i < kNodes; ++i) {
    problem.nodes.push_back({std::vector<int64_t>(kLabels), {{0, 1, std::vector<int64_t>(kLabels)}}});
    for (int32_t x = 0; x < kLabels; ++x) {
      problem.nodes[i].costs[x] = 1000 * x;
      problem.nodes[i].pieces[0].usage[x] = kLabels - x;
    }
  }
  problem.capacity = {kNodes * kLabels};
  for (int32_t i = 0; i < kNodes; ++i)
    for (int32_t j = i + 1; j < kNodes; ++j) {
      problem.edges.push_back({i, j, static_cast<int32_t>(problem.tables.size())});
      problem.tables.emplace_back();
      for (int32_t entry = 0; entry < kLabels * kLabels; ++entry)
        problem.tables.back().push_back(static_cast<int64_t>(random() % 100'000));
    }
  Pool pool;
  for (int32_t x = 0; x < kLabels; ++x) {
    Solution solution(kNodes, x);
    solution[x] = 0;
    Incumbent one;
    one.offer(problem, solution);
    pool.add(one);
  }
  EXPECT_FALSE(pool.merge(problem, 1)) << "two solutions leave more than one node";
  Incumbent one;
  one.offer(problem, Solution(kNodes, 5));
  pool.add(one);
  std::optional<Shrunk> shrunk = pool.merge(problem, kNodes);
  ASSERT_TRUE(shrunk);
  EXPECT_EQ(shrunk->problem.nodes.size(), static_cast<size_t>(kNodes));
}

} // namespace
