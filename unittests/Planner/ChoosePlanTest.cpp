#include "windlass/Planner/ChoosePlan.h"

#include "TestCluster.h"

#include "windlass/Dialect/Plan/IR/PlanOps.h"
#include "windlass/Dialect/Plan/Transforms/Pins.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Parser/Parser.h"

#include <gtest/gtest.h>

using namespace mlir;
using namespace windlass;
using namespace windlass::planner;

namespace {

class ChoosePlanTest : public testing::Test {
protected:
  ChoosePlanTest() {
    context.loadDialect<func::FuncDialect, plan::PlanDialect, train::TrainDialect>();
    module = parseSourceFile<ModuleOp>(PERCEPTRON, &context);
    before = print(*module);
    limits.hostDevices = 2;
  }

  static std::string print(ModuleOp module) {
    std::string text;
    llvm::raw_string_ostream out(text);
    module->print(out);
    return text;
  }

  std::unique_ptr<PlanSearch> makeSearch(ArrayRef<std::string> pins = {}) {
    FailureOr<std::unique_ptr<PlanSearch>> search = PlanSearch::create(*module, 2, devices.costs, 1, pins);
    return succeeded(search) ? std::move(*search) : nullptr;
  }

  TestCluster devices{2};
  SearchLimits limits;
  MLIRContext context{MLIRContext::Threading::DISABLED};
  OwningOpRef<ModuleOp> module;
  std::string before;
};

TEST_F(ChoosePlanTest, SearchingChangesNothing) {
  std::unique_ptr<PlanSearch> search = makeSearch({"fc0=n0:model"});
  ASSERT_TRUE(search);
  EXPECT_EQ(print(*module), before);
  EXPECT_FALSE(search->choose(limits).candidates.empty());
  EXPECT_EQ(print(*module), before);
  search->getProblems(limits.memoryBytes, /*pipeline=*/nullptr);
  EXPECT_EQ(print(*module), before);
}

TEST_F(ChoosePlanTest, PlansAreAppliedToCopies) {
  std::unique_ptr<PlanSearch> search = makeSearch();
  ASSERT_TRUE(search);
  SearchReport report = search->choose(limits);
  EXPECT_FALSE(report.named.empty());
  ASSERT_GT(report.candidates.size(), 1u);
  for (const Candidate &candidate : report.candidates) {
    OwningOpRef<ModuleOp> copy(module->clone());
    ASSERT_TRUE(succeeded(search->apply(candidate.choice, *copy, plan::kBucketBytes)));
    EXPECT_EQ((*copy)->getAttr(plan::kMeshAttr), candidate.choice.mesh);
    EXPECT_EQ(search->evaluate(*copy, candidate.choice), candidate.costNanoseconds);
    EXPECT_EQ(evaluatePlan(*copy, readChoice(*copy), devices.costs), candidate.costNanoseconds);
  }
  EXPECT_EQ(print(*module), before);
}

TEST_F(ChoosePlanTest, PinsReachCopies) {
  std::unique_ptr<PlanSearch> search = makeSearch({"fc0=n0:model"});
  ASSERT_TRUE(search);
  const Candidate best = search->choose(limits).candidates.front();
  OwningOpRef<ModuleOp> copy(module->clone());
  ASSERT_TRUE(succeeded(search->apply(best.choice, *copy, plan::kBucketBytes)));
  EXPECT_TRUE(succeeded(plan::checkPins(*copy, {"fc0=n0:model"})));
}

TEST_F(ChoosePlanTest, OlderPlansAreCandidates) {
  std::unique_ptr<PlanSearch> search = makeSearch(), again = makeSearch();
  ASSERT_TRUE(search && again);
  const Candidate best = search->choose(limits).candidates.front();
  OwningOpRef<ModuleOp> copy(module->clone());
  ASSERT_TRUE(succeeded(search->apply(best.choice, *copy, plan::kBucketBytes)));
  EXPECT_TRUE(again->startFrom(*copy, "the older plan"));
  SearchReport report = again->choose(limits);
  ASSERT_FALSE(report.named.empty());
  EXPECT_EQ(llvm::count_if(report.named,
                           [&](const NamedCost &its) {
                             return its.name == "the older plan" && its.costNanoseconds == best.costNanoseconds;
                           }),
            1);
  EXPECT_EQ(print(*module), before);
}

} // namespace
