#include "../../lib/Planner/RangeProblem.h"

#include "TestCluster.h"

#include "windlass/Autodiff/Passes.h"
#include "windlass/Dialect/Plan/IR/PlanOps.h"
#include "windlass/Dialect/Train/Transforms/Passes.h"
#include "windlass/Search/Solver.h"

#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace mlir;
using namespace windlass;
using namespace windlass::planner;
using testing::Each;

namespace {

/// Two blocks of eight forward operators, h.0 and h.1, and a tail of four, whose values all have 32 bytes. Before them
/// stand a mask, which both blocks read, and the product in/matmul.0.
class RecomputeTest : public testing::Test {
protected:
  RecomputeTest() {
    context.loadDialect<func::FuncDialect, plan::PlanDialect, train::TrainDialect>();
    module = parseSourceFile<ModuleOp>(BLOCKS, &context);
    PassManager manager(&context);
    manager.addPass(train::createDifferentiatePass({}));
    train::AddOptimizerPassOptions optimizer;
    optimizer.optimizer = "sgd";
    manager.addPass(train::createAddOptimizerPass(optimizer));
    manager.addPass(train::createMarkRepeatsPass());
    manager.addPass(train::createMarkSegmentsPass());
    isMade = module && succeeded(manager.run(*module));
    microbatch = module->lookupSymbol<func::FuncOp>(train::kMicrobatchFunction);
    choice.mesh = plan::makeMesh(&context, 1, 1, 1);
  }

  int64_t findForward(StringRef id) {
    int64_t position = 0;
    for (Operation &op : microbatch.front())
      if (llvm::isa<train::TrainOpInterface>(op) && !op.hasAttr(train::kForwardAttr)) {
        if (op.getAttrOfType<StringAttr>(train::kIdAttr) == id)
          return position;
        ++position;
      }
    return -1;
  }

  /// Returns the bytes in each row with `parts` of the blocks recomputed, where no operator is split.
  std::vector<int64_t> getBytes(const OperatorRange &range, int parts, int64_t inFlight) {
    Groups groups(range, choice.pins);
    RecomputeClasses recompute(groups);
    RangeSetting setting;
    setting.inFlight = inFlight;
    search::Problem problem = RangeProblem(groups, recompute, devices.costs, choice, setting).build(parts);
    return search::rowUsage(problem, search::Solution(problem.nodes.size(), 0));
  }

  /// Returns the bytes by which each row grows with a second micro-batch in flight.
  std::vector<int64_t> getGrowth(const OperatorRange &range, int parts) {
    std::vector<int64_t> growth = getBytes(range, parts, 2);
    for (auto [row, bytes] : llvm::enumerate(getBytes(range, parts, 1)))
      growth[row] -= bytes;
    return growth;
  }

  TestCluster devices{2};
  MLIRContext context{MLIRContext::Threading::DISABLED};
  OwningOpRef<ModuleOp> module;
  func::FuncOp microbatch;
  plan::StrategyChoice choice;
  bool isMade = false;
};

TEST_F(RecomputeTest, InFlightIsWhatBlocksKeep) {
  ASSERT_TRUE(isMade);
  OperatorRange whole(microbatch);
  // Kept are the product of in/matmul.0; in each block the results of softmax, sigmoid and tanh and both sums; in the
  // tail those of matmul, sigmoid and the first mul.
  const int64_t kept = 32 * (1 + 2 * 5 + 3);
  EXPECT_THAT(getGrowth(whole, 0), Each(kept));
  // The inputs of the three blocks. The mask is not counted: no row has more than without recompute.
  const int64_t recomputed = 32 * 3;
  EXPECT_THAT(getGrowth(whole, kRecomputeParts), Each(recomputed));
  EXPECT_THAT(getGrowth(whole, 1), Each((kept + recomputed) / 2));
}

TEST_F(RecomputeTest, ReadersOfOtherRangesKeepNothing) {
  ASSERT_TRUE(isMade);
  std::vector<int64_t> bytes = getBytes(OperatorRange(microbatch, 0, findForward("h.1/matmul.0")), 0, 1);
  // Nothing but the mask lives while it is made.
  const int64_t parameters = bytes[0] - 32;
  // While h.0 ends, the values that its backward pass reads and its result live: only h.1 still needs the mask.
  EXPECT_EQ(bytes[9], parameters + 32 * (1 + 4 + 1));
}

TEST_F(RecomputeTest, OperatorsOfRepeatsAddUp) {
  ASSERT_TRUE(isMade);
  choice.mesh = plan::makeMesh(&context, 1, 1, 2);
  // Adds up the least cost of each operator, without reshards.
  auto solveAndAddUp = [&](int64_t begin, int64_t end) {
    Groups groups(OperatorRange(microbatch, begin, end), choice.pins);
    RecomputeClasses recompute(groups);
    RangeProblem problem(groups, recompute, devices.costs, choice, RangeSetting());
    search::SolveResult bound = search::solve(problem.buildBound(/*pipeline=*/nullptr), search::SolveOptions());
    search::Problem built = problem.build(0);
    search::SolveResult kept = search::solve(built, search::SolveOptions());
    EXPECT_TRUE(kept.isOptimal() && bound.isOptimal());
    // Launches and reshards that may not be waited for do not count in the bound.
    EXPECT_LT(bound.cost, kept.cost);
    EXPECT_GT(bound.cost, 0);
    int64_t total = 0;
    for (unsigned group = 0; group < groups.getOperators().size(); ++group)
      total += *llvm::min_element(built.nodes[group].costs);
    EXPECT_GE(kept.cost, total);
    return total;
  };
  int64_t all = OperatorRange::countForward(microbatch), cut = findForward("h.1/matmul.0");
  int64_t whole = solveAndAddUp(0, all), first = solveAndAddUp(0, cut), second = solveAndAddUp(cut, all);
  EXPECT_GT(first, 100);
  EXPECT_GT(second, 100);
  // Operators of both blocks are rounded together in the whole.
  EXPECT_NEAR(whole, first + second, 20);
}

TEST_F(RecomputeTest, BlocksThatARangeCutsAreKept) {
  ASSERT_TRUE(isMade);
  int64_t all = OperatorRange::countForward(microbatch), cut = findForward("h.1/sigmoid.0");
  ASSERT_GT(cut, 0);
  auto listBlocks = [&](int64_t begin, int64_t end) {
    std::vector<std::string> names;
    Groups groups(OperatorRange(microbatch, begin, end), choice.pins);
    RecomputeClasses recompute(groups);
    for (const RecomputeClass &its : recompute.getClasses())
      for (const plan::SegmentBlock &block : its.blocks)
        names.push_back(block.name);
    return names;
  };
  EXPECT_EQ(listBlocks(0, all).size(), 3u);
  EXPECT_EQ(listBlocks(0, cut), std::vector<std::string>{"h.0"});
  EXPECT_EQ(listBlocks(cut, all), std::vector<std::string>{"tail.0"});
}

} // namespace
