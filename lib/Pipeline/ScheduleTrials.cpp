#include "ScheduleTrials.h"

#include "Reserve.h"

#include "windlass/Schedule/NamedSchedules.h"
#include "windlass/Schedule/PipelineTiming.h"
#include "windlass/Simulator/PredictStep.h"
#include "windlass/Support/RunTasks.h"

using namespace mlir;
using namespace windlass;

/// The share: plans that can save less than 1 / `kWorthTry` of the best step are not scheduled.
static constexpr int kWorthTry = 50;
/// Named strategies whose cost is at most 1 / `kNamedShare` above that of the best plan are scheduled.
static constexpr int kNamedShare = 10;
/// Larger units and kept gathers are tried for plans whose steps are at most `kWorthFitting` times as long as the best
/// one. They make steps of OPT-6.7B on 64 devices shorter by an eighth, and those of GPT-2 1.5B on 128 by more than a
/// half.
static constexpr int kWorthFitting = 3;
/// Where the best of `kLeastTries` plans takes longer than what must be beaten by more than 1 / `kBehindShare`, others
/// with as many stages are not tried.
static constexpr size_t kLeastTries = 3;
static constexpr int kBehindShare = 10;

LogicalResult ScheduleTrials::apply(const planner::Candidate &candidate, ModuleOp copy) const {
  // The labels do not cover everything that a pin may contradict.
  CodeScope scope(copy.getContext(), choice.pins.empty() ? Code::internal : Code::pin);
  return plans.apply(candidate.choice, copy, plan::kBucketBytes);
}

LogicalResult ScheduleTrials::fit(Trial &trial, double worthFitting) const {
  auto simulate = [&] { return predictStep(*trial.fit.schedule.module, costs).seconds; };
  trial.seconds = simulate();
  if (trial.seconds > std::min(bestSeconds, mustBeat) * worthFitting)
    return success();
  bool hasUnits = trial.planned->getOperation()->hasAttr(plan::kUnitBytesAttr);
  if (hasUnits
          ? failed(fitUnits(*trial.planned, choice, trial.fit)) || failed(fitGathers(*trial.planned, choice, trial.fit))
          : failed(windlass::fitBuckets(*trial.planned, choice, trial.fit)))
    return failure();
  trial.seconds = simulate();
  return success();
}

FailureOr<ScheduleTrials::Trial> ScheduleTrials::attempt(const planner::Candidate &candidate) const {
  Trial trial;
  trial.planned = OwningOpRef<ModuleOp>(ModuleOp(module).clone());
  if (failed(apply(candidate, *trial.planned)))
    return failure();
  // The excess is over the memory of the candidate's rows, so it counts as many blocks as recomputed.
  int64_t expectedExcess = candidate.recomputeParts > 0 ? candidate.keptPeakBytes - choice.getMemoryLimit() : 0;
  if (failed(fitMemory(*trial.planned, choice, /*wantsLeast=*/candidate.recomputeParts > 0, expectedExcess, trial.fit)))
    return failure();
  bool fits = trial.fit.schedule.bytes <= choice.getMemoryLimit();
  if (fits && failed(fit(trial, kWorthFitting)))
    return failure();
  trial.fit.schedule.distributed = nullptr;
  return trial;
}

LogicalResult ScheduleTrials::schedule(ArrayRef<planner::Candidate> candidates) {
  std::vector<FailureOr<Trial>> trials(candidates.size());
  runTasks(static_cast<int>(choice.searchThreads), static_cast<int>(candidates.size()),
           [&](int i) { trials[i] = attempt(candidates[i]); });
  for (auto [candidate, trial] : llvm::zip_equal(candidates, trials)) {
    if (failed(trial))
      return failure();
    learnMemory(candidate, *trial);
    keep(candidate, std::move(*trial));
  }
  return success();
}

void ScheduleTrials::learnMemory(const planner::Candidate &candidate, const Trial &trial) {
  const FittedSchedule &fit = trial.fit;
  int64_t excess = fit.schedule.bytes - choice.getMemoryLimit();
  if (candidate.recomputeParts == 0 && (fit.schedule.recompute.flops > 0 || fit.schedule.hasDroppedPrefetch))
    excess = fit.excessBytes;
  if (excess <= 0)
    return;
  // Its memory besides the rows of the model is known now. The next plan is likely to have the same reserve, and to
  // need slightly more of the rest.
  int64_t least = choice.getMemoryLimit() - getSearchedMemory(choice);
  int64_t unexpected = fit.schedule.reserve.total() - least - candidate.besideBytes;
  memoryBytes = std::min(memoryBytes, candidate.peakBytes - excess - std::max<int64_t>(excess - unexpected, 0) / 2);
}

void ScheduleTrials::keep(const planner::Candidate &candidate, Trial trial) {
  if (trial.seconds >= bestSeconds)
    return;
  bestSeconds = trial.seconds;
  bestCost = getSeconds(candidate, candidate.costNanoseconds);
  planned = std::move(trial.planned);
  best = std::move(trial.fit);
  bestCandidate = candidate;
}

LogicalResult ScheduleTrials::deferGathers() {
  if (!bestCandidate || !costs.overlapsCollectives() || !choice.pins.empty() || !choice.pipeline.hasOnePosition())
    return success();
  planner::Candidate candidate = *bestCandidate;
  plan::MeshAttr mesh = candidate.choice.mesh;
  bool hasShards = false;
  for (auto &[name, copies] : candidate.choice.parameters) {
    bool isOnDevice =
        copies.master.getMemory() == plan::MemoryKind::device && copies.compute.getMemory() == plan::MemoryKind::device;
    if (!plan::usesDataAxes(copies.master, mesh) || !isOnDevice)
      continue;
    copies = plan::layOutCopies(plan::gatherShards(copies.compute, mesh),
                                {/*compute=*/true, /*gradient=*/false, /*master=*/true}, mesh);
    hasShards = true;
  }
  if (!hasShards || train::getMergedMicroBatches(module) > mesh.sizeOf(plan::AxisRole::replica))
    return success();
  Trial trial;
  trial.planned = OwningOpRef<ModuleOp>(module.clone());
  if (failed(apply(candidate, *trial.planned)) ||
      failed(makeSchedule(*trial.planned, choice, Code::strategy, Purpose::trial, trial.fit.schedule)))
    return failure();
  if (trial.fit.schedule.bytes > choice.getMemoryLimit())
    return success();
  // The gathers of single weights may take many times as long as the step does with larger units.
  if (failed(fit(trial, /*worthFitting=*/INFINITY)))
    return failure();
  keep(candidate, std::move(trial));
  return success();
}

LogicalResult ScheduleTrials::fitBuckets() {
  if (!bestCandidate)
    return success();
  if (failed(windlass::fitBuckets(*planned, choice, best)))
    return failure();
  bestSeconds = predictStep(*best.schedule.module, costs).seconds;
  return success();
}

bool ScheduleTrials::isPromising(const planner::Candidate &candidate) const {
  // It may recompute less than the rows of memory say.
  return !isBehind() && getSeconds(candidate, candidate.guessNanoseconds) < getBest() * (1 - 1.0 / kWorthTry) &&
         getSeconds(candidate, candidate.costNanoseconds) < mustBeat;
}

bool ScheduleTrials::isNear(const planner::Candidate &named) const {
  double near = getBest();
  // Recompute comes on top.
  if (named.recomputeParts == 0)
    near *= 1 + 1.0 / kNamedShare;
  return getSeconds(named, named.costNanoseconds) <= std::min(near, mustBeat);
}

/// Returns the time in which a pipeline fills and drains, by the time for which a position computes. All chunks count
/// as equally long, and so do forwards, input gradients and weight gradients. From a few micro-batches for each
/// position on that time does not depend on their number, so no more are timed.
static double getFillShare(const planner::PipelineChoice &pipeline, int64_t microBatches) {
  if (pipeline.hasOnePosition())
    return 0;
  int64_t timed = pipeline.own ? microBatches : std::min(microBatches, 4 * pipeline.positions);
  llvm::Expected<schedule::Pipeline> step =
      pipeline.own
          ? llvm::Expected<schedule::Pipeline>(*pipeline.own)
          : schedule::findNamedSchedule(pipeline.schedule)->make(pipeline.positions, pipeline.chunksPerPosition, timed);
  if (!step) { // the schedule does not suit the micro-batches, as the plan's own error says
    llvm::consumeError(step.takeError());
    return 0;
  }
  schedule::PipelineTimes times;
  times.chunks.resize(step->placement.countChunks());
  schedule::PipelineTiming timing = llvm::cantFail(schedule::timePipeline(*step, times));
  double idle = timing.getIdleShare();
  return idle / (1 - idle) * static_cast<double>(timed) / static_cast<double>(microBatches);
}

double ScheduleTrials::getSeconds(const planner::Candidate &candidate, int64_t nanoseconds) const {
  int64_t microBatches = train::getMergedMicroBatches(module) / candidate.choice.mesh.sizeOf(plan::AxisRole::replica);
  auto [fill, isNew] = fillShares.try_emplace(microBatches);
  if (isNew)
    fill->second = getFillShare(choice.pipeline, microBatches);
  return nanoseconds / 1e9 / static_cast<double>(positions) * (1 + fill->second);
}

bool ScheduleTrials::isBehind() const {
  return planned && taken.size() >= kLeastTries && bestSeconds > mustBeat * (1 + 1.0 / kBehindShare);
}
