#include "windlass/Profile/Kernels/ChooseEpilogues.h"
#include "windlass/Dialect/Sched/IR/Programs.h"
#include "windlass/Dialect/Sched/IR/StepFunctions.h"

#include "windlass/Dialect/Sched/Transforms/FuseEpilogues.h"
#include "windlass/Profile/Kernels/CommandKeys.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Parser/Parser.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

using namespace mlir;
using namespace windlass;
using testing::ElementsAre;

namespace {

// T stands for the type of the elements.
constexpr char kProduct[] = R"(
    sched.launch matmul on @compute ins(%x, %w) outs(%y) {batch_rank = 0 : i64, contract_rank = 1 : i64} : (memref<4x8xT>, memref<8x16xT>) -> memref<4x16xT>
)";
constexpr char kGradient[] = R"(
    sched.launch matmul on @compute ins(%xt, %y) outs(%dw) {batch_rank = 0 : i64, contract_rank = 1 : i64} accumulate_after_first : (memref<8x4xT, strided<[1, 8]>>, memref<4x16xT>) -> memref<8x16xf32>
)";
constexpr char kSum[] = R"(
    sched.launch reduce on @compute ins(%yt) outs(%db) {reduced_rank = 1 : i64} accumulate_after_first : (memref<16x4xT, strided<[1, 16]>>) -> memref<16xf32>
)";
constexpr char kTwo[] = ": (memref<4x16xT>, memref<4x16xT, strided<[0, 1]>>) -> memref<4x16xT>\n";

class ChooseEpiloguesTest : public testing::Test {
protected:
  ChooseEpiloguesTest() {
    context.loadDialect<func::FuncDialect, train::TrainDialect, plan::PlanDialect, sched::SchedDialect>();
  }

  void parse(std::string commands, const std::string &type = "bf16") {
    std::string text = R"(
module {
sched.program @program on <[<"data", 1>]> {
  sched.arena @device_arena device bytes 65536
  sched.stream @compute compute
  sched.arena @host_arena host bytes 65536
  func.func private @add(%a: T, %b: T) -> T attributes {sched.scalar_function} {
    %c = train.add %a, %b : T
    return %c : T
  }
  func.func private @gelu(%a: T, %b: T) -> T attributes {sched.scalar_function} {
    %c = train.add %a, %b : T
    %d = train.gelu_tanh %c : T
    return %d : T
  }
  func.func private @gelu_kept(%a: T, %b: T) -> (T, T) attributes {sched.scalar_function} {
    %c = train.add %a, %b : T
    %d = train.gelu_tanh %c : T
    return %c, %d : T, T
  }
  func.func private @more(%a: T, %b: T, %r: T) -> T attributes {sched.scalar_function} {
    %c = train.add %a, %b : T
    %d = train.add %r, %c : T
    return %d : T
  }
  func.func private @gelu_grad(%x: T, %dy: T) -> T attributes {sched.scalar_function} {
    %dx = train.gelu_tanh_grad %x, %dy : T
    return %dx : T
  }
  func.func private @other(%a: T, %b: T) -> T attributes {sched.scalar_function} {
    %c = train.mul %a, %b : T
    return %c : T
  }
  func.func @forward() attributes {sched.step = #sched.step<forward, chunk 0>} {
    %x = sched.buffer @device_arena[0] : memref<4x8xT>
    %xt = sched.buffer @device_arena[0] : memref<8x4xT, strided<[1, 8]>>
    %w = sched.buffer @device_arena[1024] : memref<8x16xT>
    %v = sched.buffer @device_arena[2048] : memref<4x16xT, strided<[0, 1]>>
    %y = sched.buffer @device_arena[4096] : memref<4x16xT>
    %yt = sched.buffer @device_arena[4096] : memref<16x4xT, strided<[1, 16]>>
    %z = sched.buffer @device_arena[8192] : memref<4x16xT>
    %over = sched.buffer @device_arena[8] : memref<4x16xT>
    %dw = sched.buffer @device_arena[12288] : memref<8x16xf32>
    %db = sched.buffer @device_arena[16384] : memref<16xf32>
    %host = sched.buffer @host_arena[4096] : memref<4x16xT>
    %hostt = sched.buffer @host_arena[4096] : memref<16x4xT, strided<[1, 16]>>
    %s = sched.buffer @device_arena[20480] : memref<16xT>
    %r = sched.buffer @device_arena[24576] : memref<4xf32>
    %r2 = sched.buffer @device_arena[28672] : memref<4xf32>
)" + commands + "    return\n  }\n}\n}\n";
    const std::pair<llvm::StringRef, std::string> names[] = {
        {"PRODUCT", kProduct}, {"GRADIENT", kGradient}, {"SUM", kSum},     {"TWO", kTwo},
        {"xT", "x" + type},    {" T", " " + type},      {"(T", "(" + type}};
    for (const auto &[name, value] : names)
      for (size_t at = text.find(name); at != std::string::npos; at = text.find(name))
        text.replace(at, name.size(), value);
    module = parseSourceString<ModuleOp>(text, &context);
    ASSERT_TRUE(module);
    program = *sched::getOnlyProgram(*module);
  }
  std::vector<std::string> kernels() {
    std::vector<std::string> out;
    module->walk([&](Operation *op) {
      if (auto launch = dyn_cast<sched::LaunchOp>(op))
        out.push_back(launch.getRow().name.str());
      else if (auto map = dyn_cast<sched::LaunchMapOp>(op))
        out.push_back("map " + map.getFunction().str());
    });
    return out;
  }
  std::vector<std::string> fuse(const std::string &commands, const std::string &type = "bf16") {
    parse(commands, type);
    sched::fuseEpilogues(program, [](sched::LaunchOp) { return true; });
    return kernels();
  }

  MLIRContext context;
  OwningOpRef<ModuleOp> module;
  sched::ProgramOp program;
};

constexpr char kAdd[] = "    sched.launch_map @add on @compute ins(%y, %v) outs(%y) TWO";
constexpr char kGelu[] = "    sched.launch_map @gelu on @compute ins(%y, %v) outs(%y) TWO";
constexpr char kWriteInput[] =
    R"(    sched.launch fill on @compute ins() outs(%z) {value = 0.0 : f64} : () -> memref<4x16xT>
)";
constexpr char kWriteOther[] =
    R"(    sched.launch fill on @compute ins() outs(%s) {value = 0.0 : f64} : () -> memref<16xT>
)";
constexpr char kWrite[] = R"(    sched.launch fill on @compute ins() outs(%y) {value = 0.0 : f64} : () -> memref<4x16xT>
)";

TEST_F(ChooseEpiloguesTest, ABiasAndGeluFollowAProduct) {
  EXPECT_THAT(fuse(std::string("PRODUCT") + kAdd), ElementsAre("matmul_bias"));
  EXPECT_THAT(
      fuse("PRODUCT    sched.launch_map @add on @compute ins(%v, %y) outs(%y) : (memref<4x16xT, strided<[0, 1]>>, "
           "memref<4x16xT>) -> memref<4x16xT>\n"),
      ElementsAre("matmul_bias"));
  EXPECT_EQ(fuse("PRODUCT    sched.launch_map @add on @compute ins(%y, %v) outs(%y) {sched.in_last} TWO").size(), 2u)
      << "the sum is made in the last run only";
  EXPECT_THAT(fuse(std::string("PRODUCT") + kGelu), ElementsAre("matmul_bias_gelu"));
  EXPECT_THAT(fuse(std::string("PRODUCT") + kGelu, "f32"), ElementsAre("matmul", "map gelu")) << "f32 is exact";
  EXPECT_THAT(fuse("PRODUCT    sched.launch_map @gelu_kept on @compute ins(%y, %v) outs(%y, %z) : (memref<4x16xT>, "
                   "memref<4x16xT, strided<[0, 1]>>) -> (memref<4x16xT>, memref<4x16xT>)\n"),
              ElementsAre("matmul_bias_gelu"));
  auto fused = *sched::getStepFunction(program, sched::StepRole::forward).getOps<sched::LaunchOp>().begin();
  ASSERT_EQ(fused.getOuts().size(), 2u);
  EXPECT_EQ(fused.getOuts()[0].getDefiningOp<sched::BufferOp>().getOffset(), 8192u) << "the result is first";
}

TEST_F(ChooseEpiloguesTest, TheGradientOfGeluFollowsAProductInItsPlace) {
  auto followedBy = [&](const std::string &operands, const std::string &result, const std::string &between = "",
                        const std::string &type = "bf16") {
    return fuse("PRODUCT" + between + "    sched.launch_map @gelu_grad on @compute ins(" + operands + ") outs(" +
                    result + ") : (memref<4x16xT>, memref<4x16xT>) -> memref<4x16xT>\n",
                type);
  };
  const std::vector<std::string> apart = {"matmul", "map gelu_grad"};
  EXPECT_THAT(followedBy("%z, %y", "%y"), ElementsAre("matmul_gelu_grad"));
  EXPECT_THAT(followedBy("%z, %y", "%y", kWriteOther), ElementsAre("matmul_gelu_grad", "fill"));
  EXPECT_EQ(followedBy("%z, %y", "%z"), apart) << "in the place of the input, which the library reads";
  EXPECT_EQ(followedBy("%y, %z", "%y"), apart) << "the product is the input";
  EXPECT_EQ(followedBy("%z, %y", "%y", "", "f32"), apart) << "f32 is exact";
  EXPECT_EQ(followedBy("%z, %y", "%y", kWrite).size(), 3u) << "the product is written over in between";
  EXPECT_EQ(followedBy("%z, %y", "%y", kWriteInput).size(), 3u) << "GELU's input is written in between";
}

TEST_F(ChooseEpiloguesTest, WhatElseIsAddedComesLast) {
  const std::string map = "    sched.launch_map @more on @compute ins(%y, %v, ADDED) outs(%y) : (memref<4x16xT>, "
                          "memref<4x16xT, strided<[0, 1]>>, TYPE) -> memref<4x16xT>\n";
  auto add = [&](const std::string &added, const std::string &type) {
    std::string text = "PRODUCT" + map;
    text.replace(text.find("ADDED"), 5, added);
    text.replace(text.find("TYPE"), 4, type);
    return fuse(text);
  };
  EXPECT_THAT(add("%z", "memref<4x16xT>"), ElementsAre("matmul_bias"));
  auto fused = *sched::getStepFunction(program, sched::StepRole::forward).getOps<sched::LaunchOp>().begin();
  ASSERT_EQ(fused.getIns().size(), 4u);
  EXPECT_EQ(fused.getIns()[3].getDefiningOp<sched::BufferOp>().getOffset(), 8192u);
  EXPECT_EQ(add("%v", "memref<4x16xT, strided<[0, 1]>>").size(), 2u) << "not a matrix like the result";
  EXPECT_EQ(add("%y", "memref<4x16xT>").size(), 2u) << "the product itself, which nobody has then";
}

TEST_F(ChooseEpiloguesTest, ANormGivesItsSumBack) {
  const std::string three = "    sched.launch add_rms_norm on @compute ins(%y, %v, %z, %s) outs(%y, %z, %r) {epsilon = "
                            "1.0e-5 : f64, terms = 3 : i64} : (memref<4x16xT>, memref<4x16xT, strided<[0, 1]>>, "
                            "memref<4x16xT>, memref<16xT>) -> (memref<4x16xT>, memref<4x16xT>, memref<4xf32>)\n";
  const std::string two =
      "    sched.launch add_layer_norm on @compute ins(%v, %y, %s, %s) outs(%y, %z, %r, %r2) "
      "{epsilon = 1.0e-5 : f64, terms = 2 : i64} : (memref<4x16xT, strided<[0, 1]>>, memref<4x16xT>, "
      "memref<16xT>, memref<16xT>) -> (memref<4x16xT>, memref<4x16xT>, memref<4xf32>, memref<4xf32>)\n";
  EXPECT_THAT(fuse("PRODUCT" + three), ElementsAre("matmul_bias", "rms_norm"));
  sched::LaunchOp product, norm;
  module->walk(
      [&](sched::LaunchOp launch) { (launch.getKernel() == sched::KernelKind::rms_norm ? norm : product) = launch; });
  EXPECT_EQ(product.getIns().size(), 4u);
  EXPECT_EQ(norm.getIns()[0], product.getOuts()[0]);
  EXPECT_EQ(norm.getIns().size(), 2u);
  EXPECT_EQ(norm.getOuts().size(), 2u);
  EXPECT_FALSE(norm.getSettings().contains("terms"));
  EXPECT_TRUE(norm.getSettings().contains("epsilon"));
  EXPECT_THAT(fuse("PRODUCT" + two), ElementsAre("matmul_bias", "layer_norm"));

  parse("PRODUCT" + three);
  sched::fuseEpilogues(program, [](sched::LaunchOp) { return false; });
  EXPECT_THAT(kernels(), ElementsAre("matmul", "add_rms_norm")) << "it is not faster";
  EXPECT_THAT(
      fuse("PRODUCT    sched.launch add_rms_norm on @compute ins(%y, %z, %s) outs(%y, %over, %r) {epsilon = "
           "1.0e-5 : f64, terms = 2 : i64} : (memref<4x16xT>, memref<4x16xT>, memref<16xT>) -> (memref<4x16xT>, "
           "memref<4x16xT>, memref<4xf32>)\n"),
      ElementsAre("matmul", "add_rms_norm"))
      << "not one number for each column";
}

TEST_F(ChooseEpiloguesTest, OthersStayAsTheyAre) {
  const std::string product = "PRODUCT";
  EXPECT_EQ(fuse(product + "    sched.launch_map @other on @compute ins(%y, %v) outs(%y) TWO").size(), 2u);
  EXPECT_EQ(fuse(product + "    sched.launch_map @add on @compute ins(%y, %v) outs(%z) TWO").size(), 2u)
      << "the product's buffer keeps the product";
  EXPECT_EQ(fuse(product +
                 "    sched.launch_map @add on @compute ins(%y, %z) outs(%y) : (memref<4x16xT>, memref<4x16xT>) "
                 "-> memref<4x16xT>\n")
                .size(),
            2u)
      << "not one number for each column";
  EXPECT_EQ(fuse(product + kWrite + kAdd).size(), 3u) << "something is between";
  EXPECT_EQ(fuse(product + "    sched.launch_map @gelu_kept on @compute ins(%y, %v) outs(%y, %over) : (memref<4x16xT>, "
                           "memref<4x16xT, strided<[0, 1]>>) -> (memref<4x16xT>, memref<4x16xT>)\n")
                .size(),
            2u)
      << "the result takes the place of an operand, which is dead only after the product";
}

TEST_F(ChooseEpiloguesTest, AColumnSumGoesWithTheProductOfTheSameOperand) {
  for (const char *order : {"SUMGRADIENT", "GRADIENTSUM"}) {
    EXPECT_THAT(fuse(order), ElementsAre("matmul_bias_grad"));
    auto fused = *sched::getStepFunction(program, sched::StepRole::forward).getOps<sched::LaunchOp>().begin();
    EXPECT_TRUE(fused.getSettings().contains("sums_b"));
    EXPECT_TRUE(fused.getAccumulateAfterFirst());
  }
  EXPECT_THAT(fuse("SUM    sched.wait 0 on @compute\nGRADIENT"), ElementsAre("matmul_bias_grad"));
  EXPECT_EQ(fuse(std::string("SUM") + kWrite + "GRADIENT").size(), 3u) << "the operand changes between them";
  std::string inLast = kSum;
  inLast.replace(inLast.rfind(" : (memref"), 1, " {sched.in_last} ");
  EXPECT_EQ(fuse(inLast + "GRADIENT").size(), 2u) << "the sum is made in the last run only";
  EXPECT_EQ(fuse("SUM    sched.record 0 on @compute\nGRADIENT").size(), 2u) << "another stream may wait for the sum";
  EXPECT_EQ(fuse("SUM    sched.launch fill on @compute ins() outs(%db) {value = 0.0 : f64} : () -> memref<16xf32>\n"
                 "GRADIENT")
                .size(),
            3u)
      << "the sum is overwritten between them";
}

TEST_F(ChooseEpiloguesTest, EqualOffsetsIntoTwoArenasAreTwoPlaces) {
  EXPECT_EQ(fuse("PRODUCT    sched.launch_map @add on @compute ins(%host, %v) outs(%y) TWO").size(), 2u)
      << "what the bias is added to is not the product";
  EXPECT_EQ(fuse("    sched.launch reduce on @compute ins(%hostt) outs(%db) {reduced_rank = 1 : i64} "
                 "accumulate_after_first : (memref<16x4xT, strided<[1, 16]>>) -> memref<16xf32>\nGRADIENT")
                .size(),
            2u)
      << "the sum is over another matrix";

  // Each is an operand of its own for what measures the command and for its key.
  parse("    sched.launch copy on @compute ins(%host) outs(%y) {} : (memref<4x16xT>) -> memref<4x16xT>\n");
  auto copy = *sched::getStepFunction(program, sched::StepRole::forward).getOps<sched::LaunchOp>().begin();
  EXPECT_EQ(getOperands(copy, false).size(), 2u);
  EXPECT_EQ(CommandKeys(program).get(copy, false).text, "copy(bf16[4x16]) -> bf16[4x16]");
}

TEST_F(ChooseEpiloguesTest, WhatTookMoreTimeTogetherStaysApart) {
  const std::string commands = std::string("PRODUCT") + kAdd + "SUMGRADIENT";
  fuse(commands);
  ProductChoices measured;
  CommandKeys keys(program);
  module->walk([&](sched::LaunchOp launch) {
    for (bool isLater : {false, true})
      measured.epilogues[keys.get(launch, isLater).text] = {1e-5, 2e-5};
    EXPECT_EQ(keys.get(launch, false).work.family, "matmul.narrow");
  });
  ASSERT_EQ(measured.epilogues.size(), 3u);
  auto choose = [&] {
    parse(commands);
    chooseEpilogues(program, &measured);
    return kernels();
  };
  EXPECT_THAT(choose(), ElementsAre("matmul_bias", "matmul_bias_grad"));
  for (auto &[key, times] : measured.epilogues)
    if (llvm::StringRef(key).ends_with("adds"))
      times.apartSeconds = 1e-5;
  EXPECT_THAT(choose(), ElementsAre("matmul_bias", "reduce", "matmul")) << "later micro-batches add, and gain nothing";
  for (auto &[key, times] : measured.epilogues)
    times.apartSeconds = 1e-5;
  EXPECT_THAT(choose(), ElementsAre("matmul", "map add", "reduce", "matmul"));
  measured.epilogues.clear();
  EXPECT_THAT(choose(), ElementsAre("matmul_bias", "matmul_bias_grad"));
  parse(commands);
  chooseEpilogues(program, nullptr);
  EXPECT_THAT(kernels(), ElementsAre("matmul_bias", "matmul_bias_grad"));
}

} // namespace
