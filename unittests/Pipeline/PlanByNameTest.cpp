#include "../../lib/Pipeline/PlanByName.h"

#include "windlass/Dialect/Plan/Transforms/LayoutInference.h"
#include "windlass/InitAllDialects.h"
#include "windlass/Pipeline/MakeSchedule.h"
#include "windlass/Pipeline/Phases.h"

#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "gmock/gmock.h"

using namespace mlir;
using namespace windlass;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

namespace {

constexpr int64_t kWeights = 4, kWidth = 64;

/// Products one after another and a loss, at L1.
std::string makeGraph(int64_t columns) {
  std::string width = std::to_string(columns), weight = "tensor<" + width + "x" + width + "xf32>";
  std::string rows = "tensor<4x" + width + "xf32>", declared, computed, last = "%x";
  for (int64_t i = 0; i < kWeights; ++i) {
    std::string n = std::to_string(i);
    declared += "train.parameter weight @w" + n + " \"layer." + n + ".weight\" : " + weight +
                " from #train.source<none> {decays, trainable}\n";
    computed += "%r" + n + " = train.read @w" + n + " : " + weight + " {train.id = \"read." + n + "\"}\n%y" + n +
                " = train.matmul " + last + ", %r" + n + " batch [] x [] contract [1] x [1] : " + rows + ", " + weight +
                " -> " + rows + " {train.id = \"matmul." + n + "\"}\n";
    last = "%y" + n;
  }
  return "module attributes {train.model = \"tiny\"} {\n" + declared + "func.func @loss(%x: " + rows +
         " {train.feed = \"none\", train.input = \"x\"}, %labels: tensor<4xi64> " +
         "{train.feed = \"none\", train.input = \"labels\", train.vocabulary = " + width +
         " : i64}) -> tensor<f32> {\n" + computed + "%sum, %count, %log_sum = train.softmax_cross_entropy " + last +
         ", %labels ignore -100 {train.id = \"entropy\"} : (" + rows +
         ", tensor<4xi64>) -> (tensor<f32>, tensor<f32>, tensor<4xf32>)\n" +
         "%l = train.loss %sum, %count : tensor<f32> {train.id = \"loss\"}\nreturn %l : tensor<f32>\n}\n}\n";
}

class PlanByNameTest : public testing::Test {
protected:
  PlanByNameTest() {
    registerAllDialects(registry);
    context.appendDialectRegistry(registry);
    context.loadAllAvailableDialects();
    choice.threads = 1;
    setRanks(2);
    build(kWidth);
  }

  /// Makes the module, with weights of `width` rows and columns.
  void build(int64_t width) {
    module = parseSourceString<ModuleOp>(makeGraph(width), &context);
    FunctionsOptions functions;
    functions.optimizer = "adamw";
    functions.microBatches = 2;
    functions.precision = "bf16";
    PassManager manager(&context);
    addPhase(manager, Phase::prepareGraph);
    addPhase(manager, Phase::buildFunctions, functions);
    isBuilt = module && succeeded(manager.run(*module));
  }

  void setRanks(int64_t ranks) { choice.cluster = llvm::cantFail(findCluster("a100-40g:1x" + std::to_string(ranks))); }

  /// Plans a copy of the module; returns where the copies of each weight are: a letter each for the weight, its
  /// gradient and its master copy, D for the device, H for the host, and U where what the host holds is updated on the
  /// device. Returns nothing, and sets `error`, where that fails.
  std::vector<std::string> plan(llvm::StringRef strategy) {
    choice.strategy = strategy.str();
    error.clear();
    ScopedDiagnosticHandler handler(&context, [&](Diagnostic &diagnostic) {
      error += diagnostic.str();
      return success();
    });
    planned = OwningOpRef<ModuleOp>(module->clone());
    std::vector<std::string> places;
    if (!isBuilt || failed(planByName(*planned, choice)))
      return places;
    for (auto parameter : planned->getOps<train::ParameterOp>())
      if (parameter.isOptimized()) {
        std::string &place = places.emplace_back();
        for (plan::MemoryKind memory :
             {plan::getComputeMemory(parameter), plan::getGradientMemory(parameter), plan::getStateMemory(parameter)})
          place += memory == plan::MemoryKind::host ? 'H' : 'D';
        if (place.back() == 'H' && plan::getUpdateMemory(parameter) == plan::MemoryKind::device)
          place.back() = 'U';
      }
    return places;
  }

  DialectRegistry registry;
  MLIRContext context{MLIRContext::Threading::DISABLED};
  PlanChoice choice;
  OwningOpRef<ModuleOp> module, planned;
  bool isBuilt = false;
  std::string error;
};

TEST_F(PlanByNameTest, ZeroOffloadKeepsTheWeightsThatOperatorsRead) {
  for (int64_t ranks : {1, 2}) {
    setRanks(ranks);
    EXPECT_THAT(plan("zero-offload"), ElementsAre("DHH", "DHH", "DHH", "DHH"));
  }
}

TEST_F(PlanByNameTest, ZeroInfinityKeepsNothing) {
  for (int64_t ranks : {1, 2}) {
    setRanks(ranks);
    EXPECT_THAT(plan("zero-infinity"), ElementsAre("HHH", "HHH", "HHH", "HHH"));
  }
}

TEST_F(PlanByNameTest, TwinflowKeepsAShareOfTheState) {
  EXPECT_THAT(plan("twinflow=0"), Each("DHH"));
  EXPECT_THAT(plan("twinflow=0.5"), ElementsAre("DDD", "DDD", "DHH", "DHH"));
  EXPECT_THAT(plan("twinflow=0.74"), ElementsAre("DDD", "DDD", "DHH", "DHH")) << "whole weights";
  EXPECT_THAT(plan("twinflow=1"), Each("DDD"));
}

TEST_F(PlanByNameTest, DeepOptimizerStatesUpdateEveryKthSubgroupOnTheDevice) {
  // Two ranks have 200 million elements in a subgroup. Weights are in the first, third, fourth and fifth.
  build(16384);
  EXPECT_THAT(plan("dos=1"), Each("DDU"));
  EXPECT_THAT(plan("dos=2"), ElementsAre("DHH", "DHH", "DDU", "DHH"));
  EXPECT_THAT(plan("dos=3"), ElementsAre("DHH", "DDU", "DHH", "DHH"));
  EXPECT_THAT(plan("dos=6"), Each("DHH"));
}

TEST_F(PlanByNameTest, GeminiKeepsWhatFits) {
  EXPECT_THAT(plan("gemini"), Each("DDD"));
  // What a device needs where the host holds everything.
  ASSERT_THAT(plan("zero-infinity"), Each("HHH"));
  Schedule schedule;
  ASSERT_TRUE(succeeded(makeSchedule(*planned, choice, Code::strategy, Purpose::trial, schedule)));
  // A weight's shard in 16 bits, and its gradient, master copy and two states in f32.
  int64_t shard = kWidth * kWidth / 2, weight = 2 * shard, state = 16 * shard;
  choice.memoryLimit = schedule.bytes;
  EXPECT_THAT(plan("gemini"), Each("HHH"));
  choice.memoryLimit = schedule.bytes + 2 * weight;
  EXPECT_THAT(plan("gemini"), ElementsAre("DHH", "DHH", "HHH", "HHH"));
  choice.memoryLimit = schedule.bytes + kWeights * weight + 3 * state;
  EXPECT_THAT(plan("gemini"), ElementsAre("DDD", "DDD", "DDD", "DHH"));
}

TEST_F(PlanByNameTest, ElixirPlacesChunks) {
  EXPECT_THAT(plan("elixir"), Each("DDD"));
  // The model is smaller than the least chunk.
  int64_t chunk = kWeights * kWidth * kWidth * 2;
  for (const char *name : {plan::kUnitBytesAttr, plan::kPrefetchBytesAttr})
    EXPECT_EQ(planned->getOperation()->getAttrOfType<IntegerAttr>(name).getInt(), chunk) << name;
  EXPECT_TRUE(planned->getOperation()->hasAttr(plan::kKeepsGathersAttr));
  // A single rank gathers nothing.
  setRanks(1);
  EXPECT_THAT(plan("elixir"), Each("DDD"));
  EXPECT_FALSE(planned->getOperation()->hasAttr(plan::kKeepsGathersAttr));
}

TEST_F(PlanByNameTest, ElixirNeedsRoom) {
  choice.memoryLimit = int64_t(2) << 30;
  EXPECT_TRUE(plan("elixir").empty());
  EXPECT_THAT(error, HasSubstr("strategy 'elixir' has no room for chunks of weights beside activations"));
}

TEST_F(PlanByNameTest, RulesThatMeasureSayWhatTheyCannotMeasure) {
  choice.cluster = llvm::cantFail(findCluster("cpu:2"));
  EXPECT_TRUE(plan("elixir").empty());
  EXPECT_THAT(error, HasSubstr("divides the memory of a device that has one beside its host's"));
  EXPECT_THAT(plan("gemini"), Each("DDD"));
  setRanks(4);
  EXPECT_TRUE(plan("elixir*megatron=2").empty());
  EXPECT_THAT(error, HasSubstr("packs whole weights into chunks, but megatron splits them"));
  choice.pipeline.positions = 2;
  EXPECT_TRUE(plan("gemini").empty());
  EXPECT_THAT(error, HasSubstr("measures the memory of one stage, but --stages is 2"));
}

} // namespace
