#include "windlass/Pipeline/MakeSchedule.h"
#include "windlass/Dialect/Sched/IR/StepFunctions.h"

#include "windlass/Dialect/Plan/Transforms/Passes.h"
#include "windlass/Dialect/Sched/IR/SchedOps.h"
#include "windlass/InitAllDialects.h"
#include "windlass/Pipeline/Phases.h"

#include "mlir/Parser/Parser.h"
#include "gtest/gtest.h"

using namespace mlir;
using namespace windlass;

namespace {

/// One product, a bias and a loss, at L1.
constexpr char kGraph[] = R"(
module attributes {train.model = "tiny"} {
  train.parameter weight @w0 "weight" : tensor<2x4xf32> from #train.source<none> {decays, trainable}
  train.parameter weight @b0 "bias" : tensor<2xf32> from #train.source<none> {trainable}
  func.func @loss(%x: tensor<4x4xf32> {train.feed = "none", train.input = "x"},
                  %labels: tensor<4xi64> {train.feed = "none", train.input = "labels", train.vocabulary = 2 : i64}) -> tensor<f32> {
    %0 = train.read @w0 : tensor<2x4xf32> {train.id = "read.0"}
    %1 = train.matmul %x, %0 batch [] x [] contract [1] x [1] : tensor<4x4xf32>, tensor<2x4xf32> -> tensor<4x2xf32> {train.id = "matmul"}
    %bias = train.read @b0 : tensor<2xf32> {train.id = "read.1"}
    %rows = train.broadcast %bias dims [1] : tensor<2xf32> -> tensor<4x2xf32> {train.id = "broadcast"}
    %y = train.add %1, %rows : tensor<4x2xf32> {train.id = "add"}
    %sum, %count, %log_sum = train.softmax_cross_entropy %y, %labels ignore -100 {train.id = "entropy"} : (tensor<4x2xf32>, tensor<4xi64>) -> (tensor<f32>, tensor<f32>, tensor<4xf32>)
    %2 = train.loss %sum, %count : tensor<f32> {train.id = "loss"}
    return %2 : tensor<f32>
  }
}
)";

class MakeScheduleTest : public testing::Test {
protected:
  MakeScheduleTest() {
    registerAllDialects(registry);
    context.appendDialectRegistry(registry);
    context.loadAllAvailableDialects();
    choice.cluster = llvm::cantFail(findCluster("cpu:2"));
    choice.threads = 1;
    planned = parseSourceString<ModuleOp>(kGraph, &context);
    FunctionsOptions functions;
    functions.optimizer = "sgd";
    functions.microBatches = 2;
    plan::ApplyStrategyOptions strategy;
    strategy.strategy = "ddp";
    strategy.ranks = 2;
    PassManager manager(&context);
    addPhase(manager, Phase::prepareGraph);
    addPhase(manager, Phase::buildFunctions, functions);
    manager.addPass(plan::createApplyStrategy(strategy));
    isPlanned = planned && succeeded(manager.run(*planned));
  }

  LogicalResult make(Purpose purpose) { return makeSchedule(*planned, choice, Code::strategy, purpose, schedule); }

  DialectRegistry registry;
  MLIRContext context{MLIRContext::Threading::DISABLED};
  PlanChoice choice;
  OwningOpRef<ModuleOp> planned;
  bool isPlanned = false;
  Schedule schedule;
};

TEST_F(MakeScheduleTest, AProgramIsVerifiedAndATrialIsNot) {
  ASSERT_TRUE(isPlanned);
  ASSERT_TRUE(succeeded(make(Purpose::program)));
  EXPECT_TRUE(schedule.isVerified);
  int64_t bytes = schedule.bytes;
  ASSERT_TRUE(succeeded(make(Purpose::trial)));
  EXPECT_FALSE(schedule.isVerified);
  EXPECT_EQ(schedule.bytes, bytes);
  EXPECT_TRUE(succeeded(verifySchedule(schedule)));
  EXPECT_TRUE(schedule.isVerified);
}

TEST_F(MakeScheduleTest, DevicesComputeProductsWithTheirBias) {
  ASSERT_TRUE(isPlanned);
  auto count = [&](const char *cluster, bool fuses) {
    choice.cluster = llvm::cantFail(findCluster(cluster));
    choice.fusesEpilogues = fuses;
    EXPECT_TRUE(succeeded(make(Purpose::program)));
    int64_t fused = 0;
    schedule.program.walk([&](sched::LaunchOp launch) {
      fused += launch.getKernel() == sched::KernelKind::matmul_bias ||
               launch.getKernel() == sched::KernelKind::matmul_bias_grad;
    });
    return fused;
  };
  EXPECT_EQ(count("h200:2", true), 3) << "the forward pass, evaluation and the gradient";
  EXPECT_EQ(count("h200:2", false), 0);
  EXPECT_EQ(count("cpu:2", true), 0);
}

TEST_F(MakeScheduleTest, AWrongScheduleIsRefusedWithTheCodeOfLowering) {
  ASSERT_TRUE(isPlanned);
  ASSERT_TRUE(succeeded(make(Purpose::trial)));
  // The operand of the loss is not computed any more.
  auto forward = sched::getStepFunction(schedule.program, sched::StepRole::forward);
  ASSERT_TRUE(forward);
  auto launches = forward.getOps<sched::LaunchOp>();
  (*launches.begin())->erase();
  std::string error;
  Code code = Code::internal;
  ScopedDiagnosticHandler handler(&context, [&](Diagnostic &diagnostic) {
    error = diagnostic.str();
    code = getCode(diagnostic);
    return success();
  });
  EXPECT_TRUE(failed(verifySchedule(schedule)));
  EXPECT_FALSE(schedule.isVerified);
  EXPECT_NE(error, "");
  EXPECT_EQ(code, Code::lowering);
}

} // namespace
