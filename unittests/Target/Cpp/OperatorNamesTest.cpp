#include "windlass/Target/Cpp/OperatorNames.h"

#include "windlass/Dialect/Sched/IR/Programs.h"
#include "windlass/Dialect/Sched/IR/SchedOps.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Parser/Parser.h"
#include "gtest/gtest.h"

using namespace windlass;

namespace {

class OperatorNames : public testing::Test {
protected:
  OperatorNames() {
    context.loadDialect<sched::SchedDialect, train::TrainDialect, plan::PlanDialect, mlir::func::FuncDialect>();
  }
  mlir::MLIRContext context;
};

TEST_F(OperatorNames, AreInOrderOfIssueByStream) {
  auto module = mlir::parseSourceString<mlir::ModuleOp>(R"(
module {
sched.program @program on <[]> {
  sched.arena @device_arena device bytes 256
  sched.stream @compute compute
  sched.stream @over_batch communicator
  sched.communicator @communicator over ["batch"] on @over_batch
  func.func @forward() attributes {sched.step = #sched.step<forward, chunk 0>} {
    %a = sched.buffer @device_arena[0] : memref<f32>
    sched.launch fill on @compute ins() outs(%a) {value = 1.0 : f64} : () -> memref<f32>
    return
  }
  func.func @backward() attributes {sched.step = #sched.step<backward, chunk 0>} {
    %a = sched.buffer @device_arena[0] : memref<f32>
    sched.launch fill on @compute ins() outs(%a) {value = 1.0 : f64} : () -> memref<f32>
    sched.record 0 on @compute {sched.in_last}
    sched.wait 0 on @over_batch {sched.in_last}
    sched.launch_collective all_reduce sum @communicator, %a -> %a {sched.in_last} : memref<f32> -> memref<f32>
    return
  }
  func.func @reduce() attributes {sched.step = #sched.step<reduce, chunk 0>} {
    %a = sched.buffer @device_arena[0] : memref<f32>
    sched.launch fill on @compute ins() outs(%a) {value = 2.0 : f64} : () -> memref<f32>
    return
  }
  func.func @update() attributes {sched.step = #sched.step<update, chunk 0>} {
    return
  }
}
})",
                                                        &context);
  ASSERT_TRUE(module);
  const char *ids[] = {"a\"}", nullptr, "sum", "a\"}"};
  int next = 0;
  module->walk([&](mlir::Operation *op) {
    if (!mlir::isa<sched::LaunchOp, sched::LaunchCollectiveOp>(op))
      return;
    if (const char *id = ids[next++])
      op->setAttr(train::kIdAttr, mlir::StringAttr::get(&context, id));
  });
  EXPECT_EQ(next, 4);
  EXPECT_EQ(cpp::writeOperatorNames(*module),
            R"({"version":4,"names":["a\"}","","sum"],"positions":[[{"chunk":0,"forward":[[0],[]],"backward":[[1],[]],)"
            R"("last_backward":[[1],[2]],"weight_gradient":[[],[]],"last_weight_gradient":[[],[]],"reduce":[[0],[]],)"
            R"("update":[[],[]]}]]})"
            "\n");
}

TEST_F(OperatorNames, AreShortAndValid) {
  mlir::OwningOpRef<mlir::ModuleOp> op = mlir::ModuleOp::create(mlir::UnknownLoc::get(&context));
  auto shown = [&](const std::string &id) {
    (*op)->setAttr(train::kIdAttr, mlir::StringAttr::get(&context, id));
    return cpp::getShownOperator(*op);
  };
  EXPECT_EQ(shown("layers.0.\xc3\xa4"), "layers.0.\xc3\xa4");
  EXPECT_EQ(shown("\xff"), "\xef\xbf\xbd");
  EXPECT_EQ(shown(std::string(300, 'x')), std::string(300, 'x'));
  EXPECT_EQ(shown(std::string(301, 'x')), std::string(300, 'x') + "...");
  // Cut inside of a character.
  EXPECT_EQ(shown(std::string(299, 'x') + "\xc3\xa4"), std::string(299, 'x') + "\xef\xbf\xbd...");
  EXPECT_LE(shown(std::string(4096, '\xff')).size(), 1024u); // the most that programs read
}

} // namespace
