#include "windlass/Schedule/Pipeline.h"

#include <map>
#include <tuple>

using namespace windlass::schedule;

namespace {

/// Chunks that follow each other on one position, from the first to the last of them.
struct Run {
  int64_t first = 0, last = 0;
};

class Joiner {
public:
  explicit Joiner(const Pipeline &pipeline) : pipeline(pipeline) {
    const Placement &placement = pipeline.placement;
    joined.positions = placement.positions;
    joined.positionOf.clear();
    joined.chains.clear();
    for (int64_t chunk = 0; chunk < placement.countChunks(); ++chunk) {
      std::optional<int64_t> previous = placement.getPrevious(chunk);
      if (previous && !placement.crossesPositions(*previous, chunk)) {
        runs.back().last = chunk;
      } else {
        if (!previous)
          joined.chains.push_back(static_cast<int64_t>(runs.size()));
        joined.positionOf.push_back(placement.positionOf[chunk]);
        runs.push_back({chunk, chunk});
      }
      numberOf.push_back(static_cast<int64_t>(runs.size()) - 1);
    }
  }

  llvm::Expected<JoinedPipeline> run() {
    Pipeline computation{joined, {}};
    for (const Schedule &schedule : pipeline.positions)
      computation.positions.push_back(join(schedule));
    llvm::Expected<Pipeline> made = insertTransfers(computation);
    if (!made)
      return made.takeError();
    return JoinedPipeline{std::move(*made), std::move(numberOf)};
  }

private:
  /// Whether an action is that of its run which stays: the one that completes what the run does.
  bool completes(const Action &action) {
    Run its = runs[numberOf[action.chunk]];
    switch (action.kind) {
    case ActionKind::Forward:
      return action.chunk == its.last;
    case ActionKind::Backward:
    case ActionKind::InputGradient:
      return action.chunk == its.first;
    case ActionKind::WeightGradient:
      return ++seen[{action.kind, its.first, action.microBatch}] > its.last - its.first;
    case ActionKind::Reduce:
    case ActionKind::Update:
      return ++seen[{action.kind, its.first, 0}] > its.last - its.first;
    case ActionKind::Send:
    case ActionKind::Receive:
      return false;
    }
    return false;
  }

  Schedule join(const Schedule &schedule) {
    Schedule made;
    for (Action action : schedule.actions)
      if (completes(action)) {
        action.chunk = numberOf[action.chunk];
        made.actions.push_back(action);
      }
    return made;
  }

  const Pipeline &pipeline;
  Placement joined;
  std::vector<Run> runs;
  std::vector<int64_t> numberOf;
  /// How many parts of a run have done what has no order among them.
  std::map<std::tuple<ActionKind, int64_t, int64_t>, int64_t> seen;
};

} // namespace

llvm::Expected<JoinedPipeline> windlass::schedule::joinNeighbours(const Pipeline &pipeline) {
  return Joiner(pipeline).run();
}
