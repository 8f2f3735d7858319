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
  auto exchange = [&] {
    std::swap(module, best.module);
    std::swap(scheduled, best.scheduled);
    std::swap(search, best.search);
    std::swap(offloadTries, best.offloadTries);
    std::swap(planText, best.planText);
  };
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
      // The user sees the errors of the first plan. Later plans may lack memory, or have fewer micro-batches than
      // replicas, which only ends the search; but internal errors are always reported.
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
    exchange();
  }
  exchange();
  return purpose == Purpose::program ? verifySchedule(scheduled) : success();
}
