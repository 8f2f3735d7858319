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

/// A fused function that memory limits, and one of which a part is transcendental.
constexpr char kFunctions[] = R"(
module {
sched.program @program on <[<"data", 1>]> {
  sched.arena @device_arena device bytes 65536
  sched.stream @compute compute
  func.func @forward() attributes {sched.step = #sched.step<forward, chunk 0>} {
    %a = sched.buffer @device_arena[0] : memref<64xf32>
    %b = sched.buffer @device_arena[256] : memref<64xf32>
    sched.launch_map @root on @compute ins(%a) outs(%b) : (memref<64xf32>) -> memref<64xf32>
    sched.launch_map @tangent on @compute ins(%a) outs(%b) : (memref<64xf32>) -> memref<64xf32>
    return
  }
  func.func private @root(%x: f32) -> f32 attributes {sched.scalar_function} {
    %0 = train.mul %x, %x : f32
    %1 = train.sqrt %0 : f32
    return %1 : f32
  }
  func.func private @tangent(%x: f32) -> f32 attributes {sched.scalar_function} {
    %0 = train.mul %x, %x : f32
    %1 = train.tanh %0 : f32
    %2 = train.mul %1, %x : f32
    return %2 : f32
  }
}
})";

class CommandKeysTest : public testing::Test {
protected:
  CommandKeysTest() {
    context.loadDialect<func::FuncDialect, train::TrainDialect, plan::PlanDialect, sched::SchedDialect>();
  }

  /// Returns the keys of the commands of `text` in the first micro-batch; none where it does not parse.
  std::vector<CommandKey> getKeys(llvm::StringRef text) {
    OwningOpRef<ModuleOp> module = parseSourceString<ModuleOp>(text, &context);
    std::vector<CommandKey> found;
    if (!module)
      return found;
    CommandKeys keys(*sched::getOnlyProgram(*module));
    module->walk([&](Operation *op) {
      if (isa<sched::LaunchOp, sched::LaunchMapOp>(op))
        found.push_back(keys.get(op, /*isLater=*/false));
    });
    return found;
  }

  MLIRContext context;
};

TEST_F(CommandKeysTest, SeveralGradientsAreTheWorkOfAllOfThem) {
  std::vector<CommandKey> found = getKeys(kModule);
  ASSERT_EQ(found.size(), 3u);
  const CommandKey &first = found[0], &second = found[1], &both = found[2];
  EXPECT_EQ(both.text, "square_sum(f32[16x8], f32[40]) -> f32[]");
  EXPECT_EQ(both.work.family, first.work.family);
  EXPECT_EQ(both.work.flops, 16 * 8 + 40);
  EXPECT_EQ(both.work.flops, first.work.flops + second.work.flops);
  // Each of the others writes the sum too.
  EXPECT_EQ(both.work.bytes, first.work.bytes + second.work.bytes - 4);
}

TEST_F(CommandKeysTest, TranscendentalFunctionsAreAFamilyOfTheirOwn) {
  std::vector<CommandKey> found = getKeys(kFunctions);
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0].work.family, "map");
  EXPECT_EQ(found[1].work.family, "transcendental");
}

} // namespace
