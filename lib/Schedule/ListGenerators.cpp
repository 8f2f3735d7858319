// Schedules that are a placement and a priority: what a position can run next, it runs, backwards first.
#include "windlass/Schedule/Generators.h"

#include "ListScheduler.h"
#include "PipelineWriter.h"

#include "llvm/ADT/Twine.h"

using namespace windlass::schedule;
using llvm::Twine;

/// Schedules whole backwards before forwards, and of several the one that has least ahead of it.
static llvm::Expected<Pipeline> makeBackwardsFirst(Placement placement, int64_t microBatches) {
  ScheduleProblem problem;
  problem.times.chunks.resize(placement.countChunks());
  problem.placement = placement;
  problem.microBatches = microBatches;
  Jobs jobs(problem);
  PipelineWriter writer(std::move(placement));
  for (const std::vector<Job> &order : scheduleList(jobs, makePriority(jobs, {})))
    for (Job job : order)
      writer.add(jobs.getAction(job), jobs.getChunk(job), jobs.getMicroBatch(job));
  return writer.finish();
}

llvm::Expected<Pipeline> windlass::schedule::makeHanayo(int64_t positions, int64_t chunksPerPosition,
                                                        int64_t microBatches) {
  if (llvm::Error error = Sizes{positions, chunksPerPosition, microBatches}.check())
    return std::move(error);
  if (chunksPerPosition % 2 != 0)
    return llvm::createStringError("waves of " + Twine(chunksPerPosition) +
                                   " chunks per position; each wave has two chunks on every position");
  return makeBackwardsFirst(makeWavePlacement(positions, chunksPerPosition), microBatches);
}

llvm::Expected<Pipeline> windlass::schedule::makeChimera(int64_t positions, int64_t microBatches) {
  if (llvm::Error error = Sizes{positions, 2, microBatches}.check())
    return std::move(error);
  return makeBackwardsFirst(makeBidirectionalPlacement(positions, 1), microBatches);
}
