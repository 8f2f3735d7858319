#include "windlass/Profile/Kernels/ChooseAttentions.h"
#include "windlass/Dialect/Sched/IR/Programs.h"
#include "windlass/Dialect/Sched/IR/StepFunctions.h"

#include "windlass/Dialect/Sched/Analysis/Scratch.h"
#include "windlass/Profile/Kernels/CommandKeys.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Parser/Parser.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

using namespace mlir;
using namespace windlass;
using testing::ElementsAre;

namespace {

/// Two layers' attentions, heads of a joint projection, one of them with a mask; and the gradient of one.
constexpr char kModule[] = R"(
module {
sched.program @program on <[<"data", 1>]> {
  sched.arena @device_arena device bytes 65536
  sched.stream @compute compute
  func.func @forward() attributes {sched.step = #sched.step<forward, chunk 0>} {
    %q = sched.buffer @device_arena[0] : memref<2x4x16x8xbf16, strided<[1536, 8, 96, 1]>>
    %k = sched.buffer @device_arena[64] : memref<2x4x16x8xbf16, strided<[1536, 8, 96, 1]>>
    %v = sched.buffer @device_arena[128] : memref<2x4x16x8xbf16, strided<[1536, 8, 96, 1]>>
    %m = sched.buffer @device_arena[4096] : memref<2x4x16x16xf32>
    %o = sched.buffer @device_arena[8192] : memref<2x4x16x8xbf16, strided<[512, 8, 32, 1]>>
    %l = sched.buffer @device_arena[16384] : memref<2x4x16xf32>
    sched.launch attention on @compute ins(%q, %k, %v) outs(%o, %l) {causal, scale = 3.5e-01 : f64} : (memref<2x4x16x8xbf16, strided<[1536, 8, 96, 1]>>, memref<2x4x16x8xbf16, strided<[1536, 8, 96, 1]>>, memref<2x4x16x8xbf16, strided<[1536, 8, 96, 1]>>) -> (memref<2x4x16x8xbf16, strided<[512, 8, 32, 1]>>, memref<2x4x16xf32>)
    sched.launch attention on @compute ins(%q, %k, %v) outs(%o, %l) {causal, scale = 3.5e-01 : f64} : (memref<2x4x16x8xbf16, strided<[1536, 8, 96, 1]>>, memref<2x4x16x8xbf16, strided<[1536, 8, 96, 1]>>, memref<2x4x16x8xbf16, strided<[1536, 8, 96, 1]>>) -> (memref<2x4x16x8xbf16, strided<[512, 8, 32, 1]>>, memref<2x4x16xf32>)
    sched.launch attention on @compute ins(%q, %k, %v, %m) outs(%o, %l) {scale = 3.5e-01 : f64} : (memref<2x4x16x8xbf16, strided<[1536, 8, 96, 1]>>, memref<2x4x16x8xbf16, strided<[1536, 8, 96, 1]>>, memref<2x4x16x8xbf16, strided<[1536, 8, 96, 1]>>, memref<2x4x16x16xf32>) -> (memref<2x4x16x8xbf16, strided<[512, 8, 32, 1]>>, memref<2x4x16xf32>)
    return
  }
  func.func @backward() attributes {sched.step = #sched.step<backward, chunk 0>} {
    %q = sched.buffer @device_arena[0] : memref<2x4x16x8xbf16, strided<[1536, 8, 96, 1]>>
    %o = sched.buffer @device_arena[8192] : memref<2x4x16x8xbf16, strided<[512, 8, 32, 1]>>
    %l = sched.buffer @device_arena[16384] : memref<2x4x16xf32>
    %dq = sched.buffer @device_arena[32768] : memref<2x4x16x8xbf16>
    %dk = sched.buffer @device_arena[36864] : memref<2x4x16x8xbf16>
    %dv = sched.buffer @device_arena[40960] : memref<2x4x16x8xbf16>
    sched.launch attention_grad on @compute ins(%o, %q, %q, %q, %o, %l) outs(%dq, %dk, %dv) {causal, scale = 3.5e-01 : f64} : (memref<2x4x16x8xbf16, strided<[512, 8, 32, 1]>>, memref<2x4x16x8xbf16, strided<[1536, 8, 96, 1]>>, memref<2x4x16x8xbf16, strided<[1536, 8, 96, 1]>>, memref<2x4x16x8xbf16, strided<[1536, 8, 96, 1]>>, memref<2x4x16x8xbf16, strided<[512, 8, 32, 1]>>, memref<2x4x16xf32>) -> (memref<2x4x16x8xbf16>, memref<2x4x16x8xbf16>, memref<2x4x16x8xbf16>)
    return
  }
}
})";

class ChooseAttentionsTest : public testing::Test {
protected:
  ChooseAttentionsTest() {
    context.loadDialect<func::FuncDialect, train::TrainDialect, plan::PlanDialect, sched::SchedDialect>();
    module = parseSourceString<ModuleOp>(kModule, &context);
    program = *sched::getOnlyProgram(*module);
    CommandKeys keys(program);
    module->walk([&](sched::LaunchOp launch) {
      measured.choices[keys.get(launch, false).text] = {
          1e-5, 2e-5, launch.getKernel() == sched::KernelKind::attention ? 100 : 5000};
    });
  }
  /// Returns the chosen attentions: whether each is a gradient, and its workspace in bytes.
  std::vector<std::pair<bool, int64_t>> choose(const AttentionChoices *by) {
    std::vector<std::pair<bool, int64_t>> out;
    for (const rt::attention_choice &each : chooseAttentions(program, by))
      out.push_back({each.shape.is_gradient, each.workspace_bytes});
    return out;
  }

  MLIRContext context;
  OwningOpRef<ModuleOp> module;
  sched::ProgramOp program;
  AttentionChoices measured;
};

TEST_F(ChooseAttentionsTest, WhatTheLibraryTakesIsTakenOnceUnlessItIsSlower) {
  EXPECT_THAT(choose(&measured), ElementsAre(std::pair(false, 100), std::pair(true, 5000)));
  measured.choices.begin()->second.ownSeconds = 1e-5; // not more than the library's
  EXPECT_EQ(choose(&measured).size(), 1u);
  measured.choices.clear();
  // For each of 8 heads 64 x 128 products of 2 bytes and 16 sums of 4.
  constexpr int64_t kernels = 1 << 20;
  const auto unmeasured =
      ElementsAre(std::pair(false, kernels), std::pair(true, kernels + 8 * (64 * 128 * 2 + 16 * 4)));
  EXPECT_THAT(choose(&measured), unmeasured);
  EXPECT_THAT(choose(nullptr), unmeasured);
}

TEST_F(ChooseAttentionsTest, ShapesAreThoseOfTheOperands) {
  auto launch = *sched::getStepFunction(program, sched::StepRole::backward).getOps<sched::LaunchOp>().begin();
  std::optional<rt::attention_shape> shape = sched::getAttentionShape(launch);
  ASSERT_TRUE(shape);
  EXPECT_EQ(rt::name_of(*shape), "bf16 gradient 2x4x16x8 causal");
  EXPECT_EQ(shape->scale, 0.35);
  EXPECT_THAT(shape->strides[rt::attention_shape::dout], ElementsAre(512, 8, 32));
  EXPECT_THAT(shape->strides[rt::attention_shape::k], ElementsAre(1536, 8, 96));
  EXPECT_THAT(shape->strides[rt::attention_shape::dv], ElementsAre(512, 128, 8));
}

} // namespace
