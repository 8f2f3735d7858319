#include "windlass/Schedule/CriticalPath.h"
#include "windlass/Schedule/NamedSchedules.h"

#include "gtest/gtest.h"

#include <random>

using namespace windlass::schedule;

static int64_t measure(const StepPath &path, const std::vector<ChunkTimes> &times) {
  int64_t length = 0;
  for (size_t chunk = 0; chunk < times.size(); ++chunk)
    length += path.forwards[chunk] * times[chunk].forward +
              path.backwards[chunk] * (times[chunk].inputGradient + times[chunk].weightGradient);
  return length;
}

TEST(CriticalPathTest, KnowsThePathsOf1F1B) {
  Pipeline step = llvm::cantFail(findNamedSchedule("1f1b")->make(4, 1, 16));
  // The second position is the slowest: the first micro-batch comes to it and back before its steady state begins.
  std::vector<ChunkTimes> times = {{10, 10, 10}, {20, 20, 20}, {10, 10, 10}, {10, 10, 10}};
  CriticalPaths paths = llvm::cantFail(CriticalPaths::create(step, times));
  StepPath path = paths.findToEnd();
  EXPECT_EQ(path.position, 0);
  EXPECT_EQ(path.forwards, std::vector<int64_t>({1, 14, 1, 1}));
  EXPECT_EQ(path.backwards, std::vector<int64_t>({1, 16, 1, 1}));
  path = paths.findToLastBackward(1);
  EXPECT_EQ(path.position, 1);
  EXPECT_EQ(path.backwards, std::vector<int64_t>({0, 15, 1, 1}));
}

TEST(CriticalPathTest, PathsAreAsLongAsStepsAndNeverLonger) {
  std::mt19937_64 random{11};
  auto draw = [&](size_t chunks) {
    std::uniform_int_distribution<int64_t> time(1, 1000);
    std::vector<ChunkTimes> times;
    for (size_t chunk = 0; chunk < chunks; ++chunk)
      times.push_back({time(random), time(random), time(random)});
    return times;
  };
  int steps = 0;
  for (const NamedSchedule &named : getNamedSchedules())
    for (int64_t positions : {2, 4, 8})
      for (int64_t microBatches : {8, 16, 32}) {
        llvm::Expected<Pipeline> step = named.make(positions, named.chunksPerPosition, microBatches);
        if (!step) {
          llvm::consumeError(step.takeError());
          continue;
        }
        ++steps;
        std::vector<ChunkTimes> times = draw(step->placement.countChunks());
        CriticalPaths paths = llvm::cantFail(CriticalPaths::create(*step, times));
        StepPath path = paths.findToEnd();
        int64_t makespan = llvm::cantFail(timePipeline(*step, {times})).makespan;
        if (named.isSplit)
          EXPECT_LE(measure(path, times), makespan) << named.name.str();
        else
          EXPECT_EQ(measure(path, times), makespan) << named.name.str();
        // A path holds whatever the times are.
        for (int i = 0; i < 4; ++i) {
          std::vector<ChunkTimes> others = draw(times.size());
          makespan = llvm::cantFail(timePipeline(*step, {others})).makespan;
          EXPECT_LE(measure(path, others), makespan) << named.name.str();
          for (size_t chunk = 0; chunk < others.size(); ++chunk)
            EXPECT_LT(measure(paths.findToLastBackward(static_cast<int64_t>(chunk)), others), makespan)
                << named.name.str();
        }
      }
  EXPECT_GT(steps, 60);
}
