#include "windlass/Pipeline/Compile.h"

#include "windlass/Dialect/Train/IR/TrainFunctions.h"
#include "windlass/Dialect/Train/Transforms/MergeMicroBatches.h"
#include "windlass/Support/Diagnostics.h"

using namespace mlir;
using namespace windlass;

LogicalResult Compilation::chooseMerge(const PlanChoice &choice, Purpose purpose) {
  const int64_t most = train::whyNotMerged(train::getLossFunction(*graph)) ? 1 : train::kMostMerged;
  struct {
    OwningOpRef<ModuleOp> module;
    Schedule scheduled;
    std::optional<SearchSummary> search;
    std::vector<OffloadTry> offloadTries;
    std::string planText;
  } best;
  std::optional<double> bestSeconds;
  mergeTries.clear();
  CompileSettings settings = merging;
  // Gathers and copies between memories are shared by more samples, but values take more memory: the step becomes
  // shorter up to some number, and longer or too large from there on.
  for (int64_t merge = 1; merge <= most && merging.microBatches % merge == 0; merge *= 2) {
    settings.merge = merge;
    module = graph->clone();
    search.reset();
    offloadTries.clear();
    std::optional<double> seconds;
    {
      // The first plan's errors are the user's. Others may lack memory, or micro-batches for all replicas; but no error
      // of our own is hidden.
      bool isRefused = merge > 1;
      ScopedDiagnosticHandler withoutErrors(&context, [&](Diagnostic &its) {
        const bool isError = its.getSeverity() == DiagnosticSeverity::Error;
        isRefused &= !isError || getCode(its) != Code::internal;
        return success(isRefused && isError);
      });
      if (failed(buildMerged(settings)) || failed(applyOne(choice, Purpose::trial))) {
        if (!isRefused)
          return failure();
      } else {
        seconds = search ? search->stepSeconds : predict(choice).seconds;
      }
    }
    mergeTries.push_back({merge, seconds});
    if (!seconds || (bestSeconds && *seconds >= *bestSeconds))
      break;
    bestSeconds = seconds;
    best = {std::move(module), std::move(scheduled), std::move(search), std::move(offloadTries), std::move(planText)};
  }
  module = std::move(best.module);
  scheduled = std::move(best.scheduled);
  search = std::move(best.search);
  offloadTries = std::move(best.offloadTries);
  planText = std::move(best.planText);
  return purpose == Purpose::program ? verifySchedule(scheduled) : success();
}
