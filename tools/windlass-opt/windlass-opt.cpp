// Runs passes on IR of any level: the tool of the lit tests.
#include "mlir/Tools/mlir-opt/MlirOptMain.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "windlass/Dialect/Sched/IR/SchedOps.h"

int main(int argc, char **argv) {
  mlir::DialectRegistry registry;
  registry.insert<mlir::func::FuncDialect, windlass::train::TrainDialect, windlass::plan::PlanDialect,
                  windlass::sched::SchedDialect>();
  return mlir::asMainReturnCode(mlir::MlirOptMain(argc, argv, "Windlass optimizer driver\n", registry));
}
