#include "SimulateSchedule.h"

#include "VerifiedSchedule.h"

#include "windlass/Explain/PredictionText.h"

#include "llvm/Support/raw_ostream.h"

using namespace mlir;
using namespace windlass;

int windlass::simulateSchedule(llvm::StringRef file, llvm::StringRef cluster, bool asJson) {
  llvm::Expected<Cluster> machines = findCluster(cluster);
  if (!machines) {
    llvm::errs() << llvm::toString(machines.takeError()) << "\n";
    return 1;
  }
  VerifiedSchedule schedule;
  if (failed(schedule.read(file)))
    return 1;
  StepPrediction prediction = predictStep(schedule.getModule(), CostModel(*machines));
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
