// The reader of pipelines' schedules; what is read is written in both forms and read again as the same, and a short
// search for its placement and activations keeps its word.
#include "windlass/Schedule/DrawPipeline.h"
#include "windlass/Schedule/OrdersJson.h"
#include "windlass/Schedule/PipelineFile.h"
#include "windlass/Schedule/ScheduleSearch.h"
#include "windlass/Schedule/TimesFile.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FormatVariadic.h"

#include <cstdint>
#include <cstdlib>

using namespace windlass::schedule;

/// Reads a schedule again, and aborts where it is another one.
static void expectSame(const std::string &written, const std::string &actions) {
  auto again = parsePipelineFile(written);
  if (!again || printPipeline(again->pipeline) != actions)
    std::abort();
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t *data, std::size_t size) {
  auto file = parsePipelineFile(llvm::StringRef(reinterpret_cast<const char *>(data), size));
  if (!file) {
    llvm::consumeError(file.takeError());
    return 0;
  }
  TimedPipeline step;
  step.pipeline = std::move(file->pipeline);
  const Placement &placement = step.pipeline.placement;
  expectSame(printPipeline(step.pipeline), printPipeline(step.pipeline));
  // Orders do not say when messages go: these are placed as the reader of orders does.
  llvm::json::Object object{{"orders", writeOrders(step.pipeline)}, {"chains", llvm::json::Array(placement.chains)}};
  std::string orders = llvm::formatv("{0}", llvm::json::Value(std::move(object)));
  expectSame(orders, printPipeline(llvm::cantFail(parsePipelineFile(orders)).pipeline));

  ScaledTimes scaled = llvm::cantFail(scaleTimes(placement, makeEqualTimes(placement)));
  step.times = scaled.times;
  step.ticksPerUnit = scaled.ticksPerUnit;
  step.timing = llvm::cantFail(timePipeline(step.pipeline, step.times));
  drawText(step, 120);
  if (auto drawing = drawSvg(step, "drawing"); !drawing)
    llvm::consumeError(drawing.takeError());
  int64_t microBatches = 0;
  for (const Schedule &each : step.pipeline.positions)
    for (const Action &action : each.actions)
      microBatches = std::max(microBatches, action.microBatch + 1);
  ScheduleProblem problem = {placement, microBatches, /*isSplit=*/true, step.times, step.timing.peaks};
  constexpr int64_t kMostActions = 10'000;
  if (microBatches * placement.countChunks() > kMostActions)
    return 0;
  auto found = searchSchedule(problem, {/*workLimit=*/1000});
  if (!found) {
    llvm::consumeError(found.takeError());
    return 0;
  }
  if (llvm::Error error = checkPipeline(found->pipeline))
    std::abort();
  if (llvm::Error error = checkCaps(found->pipeline, problem.caps))
    std::abort();
  if (found->makespan < found->lowerBound)
    std::abort();
  return 0;
}
