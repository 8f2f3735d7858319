// What holds for searched schedules, whatever the sizes, caps and times.
#include "SearchedProblems.h"

#include "llvm/ADT/STLExtras.h"

#include <cstdlib>
#include <random>

using namespace windlass::schedule;

namespace {

/// The number of problems that are drawn; a longer run takes it from the environment.
int64_t getDraws() {
  const char *draws = std::getenv("WINDLASS_SCHEDULE_DRAWS");
  return draws ? std::atoll(draws) : 10'000;
}

class Drawer {
public:
  /// Draws small problems, and now and then a large one.
  ScheduleProblem draw(bool isLarge) {
    PlacementKind kind = kPlacementKinds[below(4)];
    int64_t p = 1 + below(isLarge ? 16 : 6), v = 1 + below(isLarge ? 4 : 3), m = 1 + below(isLarge ? 24 : 7);
    ScheduleProblem problem = makeProblem(kind, p, m, v, below(2) == 0);
    // Equal times of the papers, times of a few ticks, among them 0, or times that differ a thousandfold.
    int64_t spread = below(3);
    for (ChunkTimes &times : problem.times.chunks)
      if (spread > 0)
        times = {drawTime(spread == 2), drawTime(spread == 2), drawTime(spread == 2)};
    problem.times.hop = spread == 0 ? below(1200) : drawTime(spread == 2);
    if (below(8) > 0)
      for (int64_t least : getLeastCaps(problem.placement))
        problem.caps.push_back(least + (below(3) == 0 ? 0 : below(v * p + 1)));
    return problem;
  }

private:
  int64_t below(int64_t end) { return static_cast<int64_t>(random() % static_cast<uint64_t>(end)); }
  int64_t drawTime(bool isWide) { return isWide ? below(2) * below(3) + (below(4) == 0 ? below(5000) : 0) : below(9); }

  std::mt19937 random{11};
};

/// Returns the least makespan of the published schedules of the problem that keep its caps and run micro-batches in
/// order; nothing where there is none.
std::optional<int64_t> timePublished(const ScheduleProblem &problem) {
  std::optional<int64_t> best;
  const Placement &placement = problem.placement;
  int64_t chunks = placement.countChunks() / placement.positions / static_cast<int64_t>(placement.chains.size());
  for (const NamedSchedule *each : findNamedSchedules(placement, problem.isSplit)) {
    if (each->name == "breadth-first")
      continue;
    llvm::Expected<Pipeline> pipeline = each->make(placement.positions, chunks, problem.microBatches);
    if (!pipeline) {
      llvm::consumeError(pipeline.takeError());
      continue;
    }
    PipelineTiming timing = llvm::cantFail(timePipeline(*pipeline, problem.times));
    bool keepsCaps = problem.caps.empty() || llvm::all_of(llvm::zip_equal(timing.peaks, problem.caps), [](auto pair) {
                       return std::get<0>(pair) <= std::get<1>(pair);
                     });
    if (keepsCaps)
      best = std::min(best.value_or(timing.makespan), timing.makespan);
  }
  return best;
}

/// A greedy order without reserve fills a rank with young micro-batches, so that the oldest cannot come back to it. The
/// schedule is legal without buffers, keeps the caps, and is neither below its bound nor worse than a published one.
TEST(RandomSearch, NeverDeadlocksAndNeverLoses) {
  Drawer drawer;
  for (int64_t draw = 0, draws = getDraws(); draw < draws; ++draw) {
    ScheduleProblem problem = drawer.draw(draw % 16 == 0);
    SearchedSchedule found = search(problem, draw % 50 == 0 ? 20'000 : 1);
    if (std::optional<int64_t> published = timePublished(problem))
      EXPECT_LE(found.makespan, *published);
    if (testing::Test::HasFailure())
      FAIL() << "draw " << draw;
  }
}

} // namespace
