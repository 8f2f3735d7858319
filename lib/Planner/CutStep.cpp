#include "CutStep.h"

#include "Makers.h"
#include "WholeWork.h"

#include "windlass/Dialect/Plan/Transforms/PipelineStep.h"

using namespace mlir;
using namespace windlass;
using namespace windlass::planner;

/// The part of its time by which a position is taken to be slower, one after the other, to find the paths that lead
/// through each of them: strategies decide which position is the slowest.
static constexpr int64_t kSlower = 4;

/// Returns the most micro-batches whose forward passes a position has run and whose backward passes it has not begun.
static int64_t countInFlight(const schedule::Schedule &position) {
  int64_t most = 0, now = 0;
  for (const schedule::Action &action : position.actions) {
    now += (action.kind == schedule::ActionKind::Forward) - (action.kind == schedule::ActionKind::Backward);
    most = std::max(most, now);
  }
  return most;
}

static bool hasNeighboursOnOnePosition(const schedule::Placement &placement) {
  for (int64_t chunk = 1; chunk < placement.countChunks(); ++chunk)
    if (!placement.crossesPositions(chunk - 1, chunk))
      return true;
  return false;
}

CutStep::CutStep(const Groups &groups, plan::PipelineAttr pipeline, const CostModel &costs, int64_t positionRanks,
                 int64_t microBatches)
    : positions(pipeline.getPositions()), labels(groups, pipeline) {
  llvm::Expected<schedule::Pipeline> step = plan::makeStep(pipeline, microBatches);
  if (!step) {
    llvm::consumeError(step.takeError());
    return;
  }
  isSplit = schedule::hasSplitBackwards(*step);
  int64_t chunks = pipeline.countChunks();
  // A bidirectional pipeline has the chunks of the model twice, and chunks that follow each other on one position run
  // as one, not in the order of the schedule.
  if (step->placement.countChunks() != chunks || hasNeighboursOnOnePosition(step->placement))
    return;
  positionOf = step->placement.positionOf;
  if (!isSplit && chunks == positions)
    firstInFlight = countInFlight(step->positions.front());
  addChains(*step, getTimes(groups, costs, positionRanks));
  dropShorter(groups);
}

std::vector<schedule::ChunkTimes> CutStep::getTimes(const Groups &groups, const CostModel &costs,
                                                    int64_t positionRanks) const {
  std::vector<std::array<int64_t, 2>> picoseconds(positionOf.size());
  for (const OperatorGroup &group : groups.getOperators()) {
    if (isPassive(group.front()))
      continue;
    int64_t each = costs.getPicoseconds(getWholeWork(group.front())) / positionRanks;
    for (Operation *op : group.ops)
      if (std::optional<int64_t> chunk = labels.find(op))
        picoseconds[*chunk][isBackward(op)] += each;
  }
  std::vector<schedule::ChunkTimes> times;
  for (auto [forward, backward] : picoseconds) {
    // The parts of a backward take about as long.
    int64_t half = std::clamp<int64_t>(backward / 2000, 1, schedule::kMaxTicks / 2);
    times.push_back({std::clamp<int64_t>(forward / 1000, 1, schedule::kMaxTicks / 2), half, half});
  }
  return times;
}

void CutStep::addChains(const schedule::Pipeline &step, const std::vector<schedule::ChunkTimes> &times) {
  using Kind = CutChain::Kind;
  // In the first turn no position is slower.
  for (int64_t slower = -1; slower < positions; ++slower) {
    std::vector<schedule::ChunkTimes> its = times;
    for (auto [time, position] : llvm::zip_equal(its, positionOf))
      if (position == slower)
        for (int64_t *part : {&time.forward, &time.inputGradient, &time.weightGradient})
          *part += *part / kSlower;
    llvm::Expected<schedule::CriticalPaths> paths = schedule::CriticalPaths::create(step, its);
    if (!paths)
      return llvm::consumeError(paths.takeError());
    schedule::StepPath path = paths->findToEnd();
    chains.push_back({Kind::operators, path, std::nullopt});
    chains.push_back({Kind::reshards, path, std::nullopt});
    // On paths that turn elsewhere, the first chunk hardly recomputes.
    if (firstInFlight > 0 && slower <= 0)
      chains.push_back({Kind::recompute, path, std::nullopt});
    for (auto [chunk, position] : llvm::enumerate(positionOf))
      if (position == slower)
        chains.push_back({Kind::lastReductions, paths->findToLastBackward(chunk), chunk});
  }
}

void CutStep::dropShorter(const Groups &groups) {
  // What each chain counts of each group.
  std::vector<std::vector<int64_t>> counts(chains.size());
  auto add = [&](llvm::function_ref<int64_t(const CutChain &)> count) {
    for (auto [its, chain] : llvm::zip_equal(counts, chains))
      its.push_back(count(chain));
  };
  for (unsigned group = 0; group < groups.getOperators().size(); ++group) {
    ArrayRef<int64_t> members = labels.countOperators(group);
    bool isOfBackward = isBackward(groups.getOperators()[group].front());
    add([&](const CutChain &chain) { return countRuns(chain, members, isOfBackward); });
  }
  for (unsigned group = 0; group < groups.getParameters().size(); ++group) {
    ArrayRef<int64_t> members = labels.countParameters(group);
    add([&](const CutChain &chain) {
      return chain.reduced ? members[*chain.reduced] : countOn(chain.path.position, members);
    });
  }
  std::vector<CutChain> longest;
  auto isShorter = [&](size_t a, size_t b) {
    return a != b && chains[a].kind == chains[b].kind &&
           llvm::all_of(llvm::zip_equal(counts[a], counts[b]),
                        [](auto pair) { return std::get<0>(pair) <= std::get<1>(pair); });
  };
  // Where several chains count the same, the first of them is kept.
  for (size_t a = 0; a < chains.size(); ++a)
    if (llvm::none_of(llvm::seq(chains.size()),
                      [&](size_t b) { return isShorter(a, b) && !(isShorter(b, a) && a < b); }))
      longest.push_back(chains[a]);
  chains = std::move(longest);
}

int64_t CutStep::countRuns(const CutChain &chain, ArrayRef<int64_t> members, bool isBackward) {
  int64_t runs = 0;
  for (auto [calls, each] : llvm::zip_equal(chain.getCalls(isBackward), members))
    runs += calls * each;
  return runs;
}

int64_t CutStep::countOn(int64_t position, ArrayRef<int64_t> members) const {
  int64_t on = 0;
  for (auto [its, each] : llvm::zip_equal(positionOf, members))
    on += its == position ? each : 0;
  return on;
}

int64_t CutStep::countLeast(ArrayRef<int64_t> members) const {
  int64_t least = countOn(0, members);
  for (int64_t position = 1; position < positions; ++position)
    least = std::min(least, countOn(position, members));
  return least;
}
