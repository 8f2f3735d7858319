// Runs passes on IR of any level: the tool of the lit tests. `windlass-opt --import-onnx FILE` prints a model as L0,
// `windlass-opt --random-plan MODEL ...` writes a random plan.json, `windlass-opt --emit-schedule FILE DIR` the project
// of a program that is written at L5; `windlass-opt --simulate-schedule FILE CLUSTER` prints how long its step takes.
#include "EmitSchedule.h"
#include "ImportOnnx.h"
#include "KernelTable.h"
#include "OpTable.h"
#include "SimulateSchedule.h"

#include "mlir/Tools/mlir-opt/MlirOptMain.h"

#include "mlir/Transforms/Passes.h"
#include "windlass/Autodiff/Passes.h"
#include "windlass/Commands/Commands.h"
#include "windlass/Conversion/OnnxToTrain/OnnxToTrain.h"
#include "windlass/Conversion/PlanToSched/Passes.h"
#include "windlass/Conversion/SchedToEmitC/Passes.h"
#include "windlass/Dialect/Onnx/Transforms/Passes.h"
#include "windlass/Dialect/Plan/Transforms/Passes.h"
#include "windlass/Dialect/Sched/Transforms/Passes.h"
#include "windlass/Dialect/Train/Transforms/Passes.h"
#include "windlass/InitAllDialects.h"
#include "windlass/Pipeline/Phases.h"
#include "windlass/Planner/Passes.h"

static int runRandomPlan(const std::vector<std::string> &words) {
  windlass::Console console;
  return windlass::runRandomPlan(console, words);
}

int main(int argc, char **argv) {
  if (argc >= 3 && llvm::StringRef(argv[1]) == "--import-onnx")
    return windlass::printImportedOnnx(argv[2], {argv + 3, argv + argc});
  if (argc >= 4 && llvm::StringRef(argv[1]) == "--emit-schedule")
    return windlass::emitSchedule(argv[2], argv[3], {argv + 4, argv + argc});
  bool endsWithJson = llvm::StringRef(argv[argc - 1]) == "--json";
  if (argc == 4 + endsWithJson && llvm::StringRef(argv[1]) == "--simulate-schedule")
    return windlass::simulateSchedule(argv[2], argv[3], endsWithJson);
  if (argc >= 2 && llvm::StringRef(argv[1]) == "--random-plan")
    return runRandomPlan({argv + 2, argv + argc});
  if (argc == 2 && llvm::StringRef(argv[1]) == "--show-op-table")
    return windlass::printOpTable(llvm::outs(), llvm::errs()) ? 0 : 1;
  if (argc == 2 && llvm::StringRef(argv[1]) == "--show-kernel-table")
    return windlass::printKernelTable(llvm::outs(), llvm::errs()) ? 0 : 1;

  mlir::DialectRegistry registry;
  windlass::registerAllDialects(registry);

  mlir::registerTransformsPasses();
  windlass::onnx::registerOnnxPasses();
  windlass::registerOnnxToTrainPasses();
  windlass::registerOnnxToTrainPipelines();
  windlass::train::registerAutodiffPasses();
  windlass::train::registerTrainPasses();
  windlass::plan::registerPlanPasses();
  windlass::planner::registerPlannerPasses();
  windlass::sched::registerPlanToSchedPasses();
  windlass::sched::registerSchedPasses();
  windlass::registerSchedToEmitCPasses();
  windlass::registerPhasePipelines();

  return mlir::asMainReturnCode(mlir::MlirOptMain(argc, argv, "Windlass optimizer driver\n", registry));
}
