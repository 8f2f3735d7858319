#include "windlass/Schedule/PipelineTiming.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/Twine.h"

using namespace windlass::schedule;
using llvm::Twine;

int64_t ChunkTimes::get(ActionKind kind) const {
  switch (kind) {
  case ActionKind::Forward:
    return forward;
  case ActionKind::Backward:
    return inputGradient + weightGradient;
  case ActionKind::InputGradient:
    return inputGradient;
  case ActionKind::WeightGradient:
    return weightGradient;
  case ActionKind::Reduce:
  case ActionKind::Update:
  case ActionKind::Send:
  case ActionKind::Receive:
    break;
  }
  return 0;
}

double PipelineTiming::getIdleShare() const {
  double all = static_cast<double>(makespan) * static_cast<double>(busy.size()), computing = 0;
  for (int64_t each : busy)
    computing += static_cast<double>(each);
  return all > 0 ? (all - computing) / all : 0;
}

namespace {

class Timer {
public:
  Timer(const Pipeline &pipeline, const PipelineTimes &times)
      : placement(pipeline.placement), positions(pipeline.positions), times(times), clocks(positions.size(), 0),
        live(positions.size(), 0), forwardEnds(placement.countChunks()), inputEnds(placement.countChunks()) {
    timing.begins.resize(positions.size());
    timing.busy.resize(positions.size(), 0);
    timing.peaks.resize(positions.size(), 0);
  }

  llvm::Expected<PipelineTiming> run() {
    // A position runs until it waits for a value; whoever makes that value wakes it.
    for (size_t position = 0; position < positions.size(); ++position)
      runnable.push_back(position);
    while (!runnable.empty()) {
      int64_t position = runnable.back();
      runnable.pop_back();
      advance(position);
    }
    for (auto [position, schedule] : llvm::enumerate(positions)) {
      size_t index = timing.begins[position].size();
      if (index == schedule.actions.size())
        continue;
      const Action &action = schedule.actions[index];
      return llvm::createStringError("position " + Twine(position) + " waits for ever at the " + getName(action.kind) +
                                     " of micro-batch " + Twine(action.microBatch) + " of chunk " +
                                     Twine(action.chunk) + ", at action " + Twine(index));
    }
    return std::move(timing);
  }

private:
  using Ends = std::vector<llvm::DenseMap<int64_t, int64_t>>;

  /// Returns when what the action reads is there; nothing where it is not computed yet.
  std::optional<int64_t> getArrival(const Action &action) const {
    auto find = [&](const Ends &ends, int64_t chunk) -> std::optional<int64_t> {
      auto end = ends[chunk].find(action.microBatch);
      if (end == ends[chunk].end())
        return std::nullopt;
      return end->second + (placement.crossesPositions(chunk, action.chunk) ? times.hop : 0);
    };
    if (action.kind == ActionKind::Forward) {
      std::optional<int64_t> previous = placement.getPrevious(action.chunk);
      return previous ? find(forwardEnds, *previous) : 0;
    }
    if (action.kind == ActionKind::Backward || action.kind == ActionKind::InputGradient) {
      std::optional<int64_t> next = placement.getNext(action.chunk);
      return next ? find(inputEnds, *next) : 0;
    }
    return 0;
  }

  /// Returns the number of actions, from `index` on, that run as one: up to the backward of a fused pair, or one.
  size_t countFused(const std::vector<Action> &actions, size_t index) const {
    if (!times.fusesPairs || actions[index].kind != ActionKind::Forward)
      return 1;
    size_t next = index + 1;
    while (next < actions.size() && isTransfer(actions[next].kind))
      ++next;
    bool isPair = next < actions.size() && actions[next].kind == ActionKind::Backward &&
                  actions[next].chunk != actions[index].chunk;
    return isPair ? next + 1 - index : 1;
  }

  void advance(int64_t position) {
    llvm::ArrayRef<Action> actions = positions[position].actions;
    std::vector<int64_t> &begins = timing.begins[position];
    while (begins.size() < actions.size()) {
      size_t index = begins.size();
      llvm::ArrayRef<Action> fused = actions.slice(index, countFused(positions[position].actions, index));
      int64_t begin = clocks[position], length = 0;
      for (const Action &action : fused) {
        std::optional<int64_t> arrival = getArrival(action);
        if (!arrival)
          return;
        begin = std::max(begin, *arrival);
        length += times.chunks[action.chunk].get(action.kind);
      }
      begins.insert(begins.end(), fused.size(), begin);
      clocks[position] = begin + length;
      timing.busy[position] += length;
      timing.makespan = std::max(timing.makespan, begin + length);
      for (const Action &action : fused) {
        publish(action, begin + length);
        live[position] += (action.kind == ActionKind::Forward) - endsBackward(action.kind);
        timing.peaks[position] = std::max(timing.peaks[position], live[position]);
      }
    }
  }

  void publish(const Action &action, int64_t end) {
    std::optional<int64_t> reader;
    if (action.kind == ActionKind::Forward) {
      forwardEnds[action.chunk][action.microBatch] = end;
      reader = placement.getNext(action.chunk);
    } else if (action.kind == ActionKind::Backward || action.kind == ActionKind::InputGradient) {
      inputEnds[action.chunk][action.microBatch] = end;
      reader = placement.getPrevious(action.chunk);
    }
    if (reader && placement.crossesPositions(action.chunk, *reader))
      runnable.push_back(placement.positionOf[*reader]);
  }

  const Placement &placement;
  const std::vector<Schedule> &positions;
  const PipelineTimes &times;
  PipelineTiming timing;
  std::vector<int64_t> clocks, live, runnable;
  /// When forwards and input gradients end, by chunk and micro-batch.
  Ends forwardEnds, inputEnds;
};

} // namespace

llvm::Error windlass::schedule::checkTimes(const Placement &placement, const PipelineTimes &times) {
  if (static_cast<int64_t>(times.chunks.size()) != placement.countChunks())
    return llvm::createStringError("has times of " + Twine(times.chunks.size()) + " chunks for " +
                                   Twine(placement.countChunks()));
  auto isTime = [](int64_t time) { return time >= 0 && time <= kMaxTicks; };
  for (auto [chunk, each] : llvm::enumerate(times.chunks))
    if (!isTime(each.forward) || !isTime(each.inputGradient) || !isTime(each.weightGradient))
      return llvm::createStringError("has a time of chunk " + Twine(chunk) + " that is not from 0 to " +
                                     Twine(kMaxTicks));
  if (!isTime(times.hop))
    return llvm::createStringError("has a hop of " + Twine(times.hop) + "; 0 to " + Twine(kMaxTicks) + " are possible");
  return llvm::Error::success();
}

llvm::Expected<PipelineTiming> windlass::schedule::timePipeline(const Pipeline &pipeline, const PipelineTimes &times) {
  if (llvm::Error error = checkPlacement(pipeline.placement, pipeline.positions.size()))
    return std::move(error);
  if (llvm::Error error = checkTimes(pipeline.placement, times))
    return std::move(error);
  return Timer(pipeline, times).run();
}
