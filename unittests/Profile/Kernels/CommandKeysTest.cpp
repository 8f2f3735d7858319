#include "windlass/Profile/Kernels/CommandKeys.h"
#include "windlass/Dialect/Sched/IR/Programs.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Parser/Parser.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

using namespace mlir;
using namespace windlass;

namespace {

/// The squares of two gradients, apart and together.
constexpr char kModule[] = R"(
module {
sched.program @program on <[<"data", 1>]> {
  sched.arena @device_arena device bytes 65536
  sched.stream @compute compute
  func.func @update() attributes {sched.step = #sched.step<update, chunk 0>} {
    %a = sched.buffer @device_arena[0] : memref<16x8xf32>
    %b = sched.buffer @device_arena[512] : memref<40xf32>
    %s = sched.buffer @device_arena[1024] : memref<f32>
    sched.launch square_sum on @compute ins(%a) outs(%s) {} : (memref<16x8xf32>) -> memref<f32>
    sched.launch square_sum on @compute ins(%b) outs(%s) {} accumulate : (memref<40xf32>) -> memref<f32>
    sched.launch square_sum on @compute ins(%a, %b) outs(%s) {} : (memref<16x8xf32>, memref<40xf32>) -> memref<f32>
    return
  }
}
})";

TEST(CommandKeys, SeveralGradientsAreTheWorkOfAllOfThem) {
  MLIRContext context;
  context.loadDialect<func::FuncDialect, train::TrainDialect, plan::PlanDialect, sched::SchedDialect>();
  OwningOpRef<ModuleOp> module = parseSourceString<ModuleOp>(kModule, &context);
  ASSERT_TRUE(module);
  CommandKeys keys(*sched::getOnlyProgram(*module));
  std::vector<CommandKey> found;
  module->walk([&](sched::LaunchOp launch) { found.push_back(keys.get(launch, /*isLater=*/false)); });
  ASSERT_EQ(found.size(), 3u);
  const CommandKey &first = found[0], &second = found[1], &both = found[2];
  EXPECT_EQ(both.text, "square_sum(f32[16x8], f32[40]) -> f32[]");
  EXPECT_EQ(both.work.family, first.work.family);
  EXPECT_EQ(both.work.flops, 16 * 8 + 40);
  EXPECT_EQ(both.work.flops, first.work.flops + second.work.flops);
  // Each of the others writes the sum too.
  EXPECT_EQ(both.work.bytes, first.work.bytes + second.work.bytes - 4);
}

} // namespace
