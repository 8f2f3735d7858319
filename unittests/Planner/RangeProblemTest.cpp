#include "../../lib/Planner/RangeProblem.h"
#include "../../lib/Planner/MeshSearch.h"

#include "TestCluster.h"

#include "windlass/Dialect/Plan/IR/PlanOps.h"
#include "windlass/Search/Solver.h"

#include "mlir/Parser/Parser.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace mlir;
using namespace windlass;
using namespace windlass::planner;
using testing::Each;

namespace {

/// A perceptron of two layers: its forward operators 0 to 4 are the first layer, 5 to 10 the second one and the loss.
class RangeProblemTest : public testing::Test {
protected:
  /// The problem of a range and all that it refers to.
  struct Range {
    Range(const RangeProblemTest &test, OperatorRange range, const RangeSetting &setting)
        : groups(std::move(range), plan::Pins()), recompute(groups),
          problem(groups, recompute, test.devices.costs, test.makeChoice(), setting), built(problem.build(0)) {}

    search::SolveResult solve() const { return search::solve(built, search::SolveOptions()); }
    /// Returns the bytes in each row of memory where each node has its first label: no operator is split, no copy is a
    /// shard.
    std::vector<int64_t> getBytes() const {
      std::vector<int64_t> usage = search::rowUsage(built, search::Solution(built.nodes.size(), 0));
      usage.resize(built.capacity.size());
      return usage;
    }

    Groups groups;
    RecomputeClasses recompute;
    RangeProblem problem;
    search::Problem built;
  };

  RangeProblemTest() {
    context.loadDialect<func::FuncDialect, plan::PlanDialect, train::TrainDialect>();
    module = parseSourceFile<ModuleOp>(PERCEPTRON, &context);
    microbatch = module->lookupSymbol<func::FuncOp>(train::kMicrobatchFunction);
    forwards = OperatorRange::countForward(microbatch);
  }

  plan::StrategyChoice makeChoice() const {
    plan::StrategyChoice choice;
    choice.mesh = plan::makeMesh(microbatch->getContext(), 1, 1, modelRanks);
    return choice;
  }

  static RangeSetting makeSetting(int64_t inFlight = 1) {
    RangeSetting setting;
    setting.accumulationSteps = 4;
    setting.inFlight = inFlight;
    return setting;
  }

  Range makeWhole(const RangeSetting &setting) const { return {*this, OperatorRange(microbatch), setting}; }
  Range makeFirst(const RangeSetting &setting) const { return {*this, OperatorRange(microbatch, 0, kCut), setting}; }
  Range makeSecond(const RangeSetting &setting) const {
    return {*this, OperatorRange(microbatch, kCut, forwards), setting};
  }

  static constexpr int64_t kCut = 5;
  TestCluster devices{2};
  int64_t modelRanks = 1;
  MLIRContext context{MLIRContext::Threading::DISABLED};
  OwningOpRef<ModuleOp> module;
  mutable func::FuncOp microbatch;
  int64_t forwards = 0;
};

TEST_F(RangeProblemTest, RangesShareOutTheOperators) {
  OperatorRange first(microbatch, 0, kCut), second(microbatch, kCut, forwards);
  EXPECT_EQ(forwards, 11);
  for (Operation &op : microbatch.front())
    EXPECT_EQ(first.contains(&op) + second.contains(&op), llvm::isa<train::TrainOpInterface>(op));
  EXPECT_FALSE(first.isWhole());
  EXPECT_TRUE(OperatorRange(microbatch, 0, forwards).isWhole());
  // The activation comes to the second range, its gradient back to the first.
  Groups groups(second, plan::Pins()), back(first, plan::Pins());
  ASSERT_EQ(groups.getBorder().size(), 1u);
  EXPECT_EQ(groups.getBorder().front().getDefiningOp()->getAttrOfType<StringAttr>(train::kIdAttr), "relu0");
  ASSERT_EQ(back.getBorder().size(), 1u);
  EXPECT_EQ(back.getBorder().front().getDefiningOp()->getAttrOfType<StringAttr>(train::kIdAttr), "fc1.grad.0");
  EXPECT_EQ(groups.getParameters().size(), 1u);
  EXPECT_EQ(back.getParameters().size(), 2u);
}

TEST_F(RangeProblemTest, CostsOfRangesAddUp) {
  search::SolveResult whole = makeWhole(makeSetting()).solve(), first = makeFirst(makeSetting()).solve(),
                      second = makeSecond(makeSetting()).solve();
  ASSERT_TRUE(whole.isOptimal() && first.isOptimal() && second.isOptimal());
  EXPECT_GT(first.cost, 0);
  EXPECT_GT(second.cost, 0);
  EXPECT_EQ(whole.cost, first.cost + second.cost);
}

TEST_F(RangeProblemTest, OperatorsCostTheSameInEachRange) {
  modelRanks = 2;
  Range whole = makeWhole(makeSetting());
  size_t found = 0;
  for (const Range &part : {makeFirst(makeSetting()), makeSecond(makeSetting())}) {
    for (auto [group, its] : llvm::enumerate(part.groups.getOperators())) {
      const std::vector<int64_t> &costs = whole.built.nodes[*whole.groups.getGroup(its.front())].costs;
      EXPECT_EQ(part.built.nodes[group].costs, costs);
      EXPECT_GT(costs.size(), 0u);
      ++found;
    }
    EXPECT_TRUE(part.solve().isOptimal());
  }
  EXPECT_EQ(found, whole.groups.getOperators().size());
}

TEST_F(RangeProblemTest, PlansOfTheWholeArePlansOfRanges) {
  Range whole = makeWhole(makeSetting()), first = makeFirst(makeSetting()), second = makeSecond(makeSetting());
  plan::StrategyChoice choice = whole.problem.decode(whole.solve().solution);
  OwningOpRef<ModuleOp> planned(module->clone());
  Counterparts counterparts(*module, *planned);
  ASSERT_TRUE(succeeded(plan::applyStrategy(*planned, counterparts.translate(choice), plan::kBucketBytes)));
  int64_t cost = 0;
  for (const Range *part : {&first, &second}) {
    std::optional<search::Solution> solution = part->problem.encode(choice, counterparts);
    ASSERT_TRUE(solution);
    cost += search::evaluate(part->built, *solution).cost;
    // A range chooses for its own operators only.
    EXPECT_EQ(part->problem.decode(*solution).pins.ops.size(), part->groups.getOperators().size());
  }
  EXPECT_EQ(cost, whole.solve().cost);
}

TEST_F(RangeProblemTest, BorderValuesTakeMemory) {
  std::vector<int64_t> bytes = makeSecond(makeSetting()).getBytes();
  ASSERT_EQ(bytes.size(), 10u);
  // The weight of 6 x 3: gradient, master copy and momentum.
  const int64_t weight = 3 * 72;
  // The product: the activation of 8 x 6 from the border, and the logits of 8 x 3.
  EXPECT_EQ(bytes[0], weight + 192 + 96);
  // The gradient of the weight needs the activation still, the gradient of the logits and its result.
  EXPECT_EQ(bytes[8], weight + 192 + 96 + 72);
  // The gradient of the activation: nobody needs the activation any more.
  EXPECT_EQ(bytes[9], weight + 96 + 192);
  // The first range, in its backward pass, has the gradient from the border.
  const int64_t weights = 3 * (96 + 24);
  EXPECT_EQ(makeFirst(makeSetting()).getBytes()[5], weights + 192 /*stash*/ + 192 /*border*/ + 192 /*made*/);
}

TEST_F(RangeProblemTest, MicroBatchesInFlightKeepTheirStash) {
  auto getGrowth = [](const Range &one, const Range &three) {
    std::vector<int64_t> growth = three.getBytes();
    for (auto [row, bytes] : llvm::enumerate(one.getBytes()))
      growth[row] -= bytes;
    return growth;
  };
  // The first layer keeps the sum of 8 x 6 before its function.
  const int64_t first = 192;
  // The second layer keeps its input of 8 x 6, the logits of 8 x 3, a sum for each row, and the count.
  const int64_t second = 192 + 96 + 32 + 4;
  EXPECT_THAT(getGrowth(makeFirst(makeSetting()), makeFirst(makeSetting(3))), Each(2 * first));
  EXPECT_THAT(getGrowth(makeSecond(makeSetting()), makeSecond(makeSetting(3))), Each(2 * second));
  EXPECT_THAT(getGrowth(makeWhole(makeSetting()), makeWhole(makeSetting(3))), Each(2 * (first + second)));
}

TEST_F(RangeProblemTest, PipelinesHoldTheStashesOfTheirSchedule) {
  Builder builder(&context);
  (*module)->setAttr(train::kSettingsAttr,
                     builder.getDictionaryAttr(builder.getNamedAttr("micro_batches", builder.getI64IntegerAttr(8))));
  auto getInFlight = [&](StringRef schedule, int64_t positions, int64_t chunks) {
    SmallVector<StringAttr> begins(positions * chunks - 1, builder.getStringAttr("any"));
    (*module)->setAttr(plan::kPipelineAttr,
                       plan::PipelineAttr::get(&context, positions, builder.getStringAttr(schedule), begins, {}));
    RangeSetting setting = makeStepSetting(microbatch, makeChoice().mesh, devices.costs, /*threads=*/1);
    EXPECT_EQ(setting.positions, positions);
    return setting.inFlight;
  };
  // The first of S positions has S micro-batches in flight, of each of which it holds a part in S.
  EXPECT_EQ(getInFlight("1f1b", 4, 1), 1);
  // All positions hold all 8 micro-batches.
  EXPECT_EQ(getInFlight("gpipe", 2, 1), 4);
  // The first chunk of the first position holds 4 micro-batches, its second one 2; each is a part in 4.
  EXPECT_EQ(getInFlight("interleaved", 2, 2), 1.5);
}

TEST_F(RangeProblemTest, BudgetsLimitMemory) {
  Range whole = makeWhole(makeSetting());
  std::vector<int64_t> bytes = whole.getBytes();
  int64_t peak = *llvm::max_element(bytes);
  RangeSetting setting = makeSetting();
  setting.memories = {{plan::MemoryKind::device, peak}};
  EXPECT_TRUE(makeWhole(setting).solve().isFeasible());
  setting.memories = {{plan::MemoryKind::device, peak - 1}};
  EXPECT_FALSE(makeWhole(setting).solve().isFeasible());
}

TEST_F(RangeProblemTest, MemoriesHaveRowsOfTheirOwn) {
  RangeSetting setting = makeSetting();
  setting.memories = {{plan::MemoryKind::device, 100}, {plan::MemoryKind::host, 1000}};
  setting.windows = StepWindows::withCollectives();
  Reshards reshards(makeChoice().mesh, devices.costs);
  ProblemBuilder builder(setting, reshards);
  builder.begin(/*rows=*/2, /*loads=*/1);
  int32_t node = builder.addNode({0, 0});
  builder.addHeldBytes(node, plan::MemoryKind::host, {700, 1100});
  builder.addBytes(node, plan::MemoryKind::device, {{1, 2, 3 * kRecomputeParts}}, {30, 0});
  builder.addLoad(node, 1, {5, 0});
  search::Problem problem = builder.take();
  EXPECT_EQ(problem.capacity, (std::vector<int64_t>{100, 100, 1000, 1000}));
  EXPECT_EQ(search::rowUsage(problem, {0}), (std::vector<int64_t>{0, 90, 700, 700, 0, 5, 0, 0, 0, 0}));
  EXPECT_TRUE(search::evaluate(problem, {0}).isFeasible());
  EXPECT_EQ(search::evaluate(problem, {1}).excess, 100);
}

TEST_F(RangeProblemTest, WindowsCarryWhatIsOtherwiseExposed) {
  Range exposed = makeSecond(makeSetting());
  RangeSetting setting = makeSetting();
  setting.windows = StepWindows::withCollectives();
  Range windows = makeSecond(setting);
  EXPECT_EQ(windows.built.windowEnd, (std::vector<int32_t>{2, 4, 6}));
  // On one device nothing runs beside operators: each window takes as long as they do. Costs are rounded once more.
  search::Solution none(exposed.built.nodes.size(), 0);
  EXPECT_NEAR(search::evaluate(windows.built, none).cost, search::evaluate(exposed.built, none).cost, 10);
  for (const search::Node &node : llvm::ArrayRef(windows.built.nodes).take_front(windows.groups.getOperators().size()))
    EXPECT_THAT(node.costs, Each(0));
}

} // namespace
