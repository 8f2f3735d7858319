#include "../../lib/Pipeline/SearchStages.h"

#include "windlass/InitAllDialects.h"
#include "windlass/Pipeline/Phases.h"

#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "gtest/gtest.h"

using namespace mlir;
using namespace windlass;

namespace {

/// One matmul and a loss, at L1.
constexpr char kGraph[] = R"(
module attributes {train.model = "tiny"} {
  train.parameter weight @w0 "weight" : tensor<2x4xf32> from #train.source<none> {decays, trainable}
  func.func @loss(%x: tensor<4x4xf32> {train.feed = "none", train.input = "x"},
                  %labels: tensor<4xi64> {train.feed = "none", train.input = "labels", train.vocabulary = 2 : i64}) -> tensor<f32> {
    %0 = train.read @w0 : tensor<2x4xf32> {train.id = "read.0"}
    %1 = train.matmul %x, %0 batch [] x [] contract [1] x [1] : tensor<4x4xf32>, tensor<2x4xf32> -> tensor<4x2xf32> {train.id = "matmul"}
    %sum, %count, %log_sum = train.softmax_cross_entropy %1, %labels ignore -100 {train.id = "entropy"} : (tensor<4x2xf32>, tensor<4xi64>) -> (tensor<f32>, tensor<f32>, tensor<4xf32>)
    %2 = train.loss %sum, %count : tensor<f32> {train.id = "loss"}
    return %2 : tensor<f32>
  }
}
)";

std::string print(ModuleOp module) {
  std::string text;
  llvm::raw_string_ostream out(text);
  module->print(out);
  return text;
}

TEST(SearchPlanTest, TheSearchedModuleStaysAsItIs) {
  DialectRegistry registry;
  MLIRContext context{MLIRContext::Threading::DISABLED};
  registerAllDialects(registry);
  context.appendDialectRegistry(registry);
  context.loadAllAvailableDialects();
  OwningOpRef<ModuleOp> module = parseSourceString<ModuleOp>(kGraph, &context);
  FunctionsOptions functions;
  functions.optimizer = "sgd";
  functions.microBatches = 2;
  PassManager manager(&context);
  addPhase(manager, Phase::prepareGraph);
  addPhase(manager, Phase::buildFunctions, functions);
  ASSERT_TRUE(module && succeeded(manager.run(*module)));
  std::string before = print(*module);

  PlanChoice choice;
  choice.cluster = llvm::cantFail(findCluster("cpu:2"));
  choice.pins = {"matmul=whole"};
  FailureOr<FoundPlan> found = searchStages(*module, choice, "f32", /*begin=*/{}, INFINITY);
  ASSERT_TRUE(succeeded(found));
  EXPECT_EQ(print(*module), before);
  EXPECT_TRUE(found->planned.get()->hasAttr(plan::kMeshAttr));
  EXPECT_TRUE(succeeded(verifySchedule(found->schedule)));
  EXPECT_GT(found->summary.costNanoseconds, 0);
  EXPECT_TRUE(found->summary.boundNanoseconds.has_value());
  EXPECT_LE(found->summary.boundNanoseconds, found->summary.costNanoseconds);

  // Nothing is shorter than a step that takes no time.
  FailureOr<FoundPlan> shorter = searchStages(*module, choice, "f32", /*begin=*/{}, 0);
  ASSERT_TRUE(succeeded(shorter));
  EXPECT_FALSE(shorter->planned);

  // Nor does it change where nothing fits.
  choice.memoryLimit = 1;
  ScopedDiagnosticHandler silent(&context, [](Diagnostic &) { return success(); });
  FailureOr<FoundPlan> none = searchStages(*module, choice, "f32", /*begin=*/{}, INFINITY);
  ASSERT_TRUE(succeeded(none));
  EXPECT_FALSE(none->planned);
  EXPECT_TRUE(failed(none->refuse()));
  EXPECT_EQ(print(*module), before);
}

} // namespace
