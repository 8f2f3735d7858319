#include "SimulateSchedule.h"

#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "windlass/Dialect/Sched/Transforms/Passes.h"
#include "windlass/Explain/PredictionText.h"
#include "windlass/InitAllDialects.h"

#include "llvm/Support/SourceMgr.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;
using namespace windlass;

int windlass::simulateSchedule(llvm::StringRef file, llvm::StringRef cluster, bool asJson) {
  llvm::Expected<Cluster> machines = findCluster(cluster);
  if (!machines) {
    llvm::errs() << llvm::toString(machines.takeError()) << "\n";
    return 1;
  }
  DialectRegistry registry;
  registerAllDialects(registry);
  MLIRContext context(registry, MLIRContext::Threading::DISABLED);
  llvm::SourceMgr sources;
  SourceMgrDiagnosticHandler handler(sources, &context);
  auto module = parseSourceFile<ModuleOp>(file, sources, &context);
  if (!module)
    return 1;
  PassManager manager(&context);
  manager.addPass(sched::createVerifyCommands());
  if (failed(manager.run(*module)))
    return 1;
  StepPrediction prediction = predictStep(*module, CostModel(*machines));
  if (prediction.positions.empty())
    return 1;
  if (asJson) {
    llvm::json::OStream json(llvm::outs(), 2);
    json.object([&] { writePrediction(json, prediction); });
    llvm::outs() << "\n";
  } else {
    llvm::outs() << timeText(prediction);
  }
  return 0;
}
