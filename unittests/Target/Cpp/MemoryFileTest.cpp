#include "windlass/Target/Cpp/MemoryFile.h"

#include "windlass/Dialect/Sched/IR/SchedOps.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Parser/Parser.h"
#include "gtest/gtest.h"

using namespace windlass;

TEST(MemoryFile, HoldsBytesWhereTheyChange) {
  mlir::MLIRContext context;
  context.loadDialect<sched::SchedDialect, train::TrainDialect, plan::PlanDialect, mlir::func::FuncDialect>();
  // The backward pass reads the first value of the forward pass; the others live for one command.
  auto module = mlir::parseSourceString<mlir::ModuleOp>(R"(
module {
sched.program @program on <[]> {
  sched.arena @device_arena device bytes 1024 {sched.permanent_bytes = 256 : i64}
  sched.stream @compute compute
  func.func @forward() attributes {sched.step = #sched.step<forward, chunk 0>} {
    %a = sched.buffer @device_arena[256] : memref<16xf32> {sched.storage = 1 : i64}
    %b = sched.buffer @device_arena[320] : memref<16xf32> {sched.storage = 2 : i64}
    sched.launch fill on @compute ins() outs(%a) {value = 1.0 : f64} : () -> memref<16xf32>
    sched.launch copy on @compute ins(%a) outs(%b) {} : (memref<16xf32>) -> memref<16xf32>
    return
  }
  func.func @backward() attributes {sched.step = #sched.step<backward, chunk 0>} {
    %a = sched.buffer @device_arena[256] : memref<16xf32> {sched.storage = 1 : i64}
    %c = sched.buffer @device_arena[320] : memref<16xf32> {sched.storage = 3 : i64}
    sched.launch copy on @compute ins(%a) outs(%c) {} : (memref<16xf32>) -> memref<16xf32>
    return
  }
  func.func @reduce() attributes {sched.step = #sched.step<reduce, chunk 0>} {
    return
  }
  func.func @update() attributes {sched.step = #sched.step<update, chunk 0>} {
    return
  }
}
})",
                                                        &context);
  ASSERT_TRUE(module);
  EXPECT_EQ(
      cpp::writeMemoryCourses(*module),
      R"({"version":1,"positions":[{"commands":3,"functions":[["forward",0],["backward",2],["reduce",3],["update",3]],)"
      R"("layers":[{"content":"others","bytes":[[0,256]]},{"content":"kept for the backward pass","bytes":[[0,64]]},)"
      R"({"content":"activations and scratch","bytes":[[0,0],[1,64]]}]}]})"
      "\n");
}
