#include "windlass/Dialect/Sched/Analysis/Scratch.h"
#include "windlass/Dialect/Sched/IR/Programs.h"

#include "mlir/Parser/Parser.h"
#include "gtest/gtest.h"

using namespace windlass::sched;

namespace {

class Scratch : public testing::Test {
protected:
  Scratch() { context.loadDialect<SchedDialect, mlir::func::FuncDialect>(); }

  int64_t perThread(llvm::StringRef commands) {
    std::string text = "sched.program @program on <[]> {\nsched.arena @device_arena device bytes 1048576\nsched.stream "
                       "@compute compute\nfunc.func @forward() "
                       "attributes {sched.step = #sched.step<forward, chunk 0>} {\n" +
                       commands.str() + "\n  return\n}\n}\n";
    module = mlir::parseSourceString<mlir::ModuleOp>(text, &context);
    EXPECT_TRUE(module);
    return module ? getScratchBytesPerThread(*getOnlyProgram(*module)) : -1;
  }

  mlir::MLIRContext context;
  mlir::OwningOpRef<mlir::ModuleOp> module;
};

TEST_F(Scratch, ProgramWithoutCommandsNeedsNone) { EXPECT_EQ(perThread(""), 0); }

TEST_F(Scratch, AttentionNeedsRowsOfScores) {
  int64_t bytes = perThread(R"(
    %q = sched.buffer @device_arena[0] : memref<2x3x16x8xf32>
    %l = sched.buffer @device_arena[8192] : memref<2x3x16xf32>
    %o = sched.buffer @device_arena[16384] : memref<2x3x16x8xf32>
    sched.launch attention on @compute ins(%q, %q, %q) outs(%o, %l) {scale = 1.0 : f64}
      : (memref<2x3x16x8xf32>, memref<2x3x16x8xf32>, memref<2x3x16x8xf32>) -> (memref<2x3x16x8xf32>, memref<2x3x16xf32>)
  )");
  EXPECT_GT(bytes, 0);
  EXPECT_EQ(bytes % 64, 0);
}

TEST_F(Scratch, MatmulThatGemmCannotReadNeedsPacking) {
  EXPECT_EQ(perThread(R"(
    %a = sched.buffer @device_arena[0] : memref<8x8xf32>
    %c = sched.buffer @device_arena[8192] : memref<8x8xf32>
    sched.launch matmul on @compute ins(%a, %a) outs(%c) {batch_rank = 0 : i64, contract_rank = 1 : i64}
      : (memref<8x8xf32>, memref<8x8xf32>) -> memref<8x8xf32>
  )"),
            0);
  EXPECT_GT(perThread(R"(
    %a = sched.buffer @device_arena[0] : memref<8x8xf32, strided<[32, 2]>>
    %c = sched.buffer @device_arena[8192] : memref<8x8xf32>
    sched.launch matmul on @compute ins(%a, %a) outs(%c) {batch_rank = 0 : i64, contract_rank = 1 : i64}
      : (memref<8x8xf32, strided<[32, 2]>>, memref<8x8xf32, strided<[32, 2]>>) -> memref<8x8xf32>
  )"),
            0);
}

TEST_F(Scratch, ShapesThatDoNotFitAreNoReasonToCrash) {
  EXPECT_EQ(perThread(R"(
    %a = sched.buffer @device_arena[0] : memref<8xf32>
    %b = sched.buffer @device_arena[64] : memref<8xf32>
    %c = sched.buffer @device_arena[128] : memref<8xf32>
    sched.launch attention on @compute ins(%a, %a, %a) outs(%b, %c) {} : (memref<8xf32>, memref<8xf32>, memref<8xf32>) -> (memref<8xf32>, memref<8xf32>)
    sched.launch matmul on @compute ins(%a, %a) outs(%b) {} : (memref<8xf32>, memref<8xf32>) -> memref<8xf32>
  )"),
            0);
}

} // namespace
