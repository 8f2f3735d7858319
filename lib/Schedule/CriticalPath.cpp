#include "windlass/Schedule/CriticalPath.h"

#include "llvm/ADT/STLExtras.h"

using namespace windlass::schedule;

static bool makesInputGradient(ActionKind kind) {
  return kind == ActionKind::Backward || kind == ActionKind::InputGradient;
}

llvm::Expected<CriticalPaths> CriticalPaths::create(const Pipeline &pipeline, const std::vector<ChunkTimes> &times) {
  llvm::Expected<PipelineTiming> timing = timePipeline(pipeline, {times});
  if (!timing)
    return timing.takeError();
  return CriticalPaths(pipeline, times, std::move(*timing));
}

CriticalPaths::CriticalPaths(const Pipeline &pipeline, const std::vector<ChunkTimes> &times, PipelineTiming timing)
    : pipeline(pipeline), times(times), timing(std::move(timing)), forwards(times.size()),
      inputGradients(times.size()) {
  auto add = [](std::vector<size_t> &indices, int64_t microBatch, size_t index) {
    indices.resize(std::max(indices.size(), static_cast<size_t>(microBatch) + 1));
    indices[microBatch] = index;
  };
  for (const Schedule &position : pipeline.positions)
    for (auto [index, action] : llvm::enumerate(position.actions)) {
      if (action.kind == ActionKind::Forward)
        add(forwards[action.chunk], action.microBatch, index);
      else if (makesInputGradient(action.kind))
        add(inputGradients[action.chunk], action.microBatch, index);
    }
}

int64_t CriticalPaths::getEnd(int64_t position, size_t index) const {
  const Action &action = pipeline.positions[position].actions[index];
  return timing.begins[position][index] + times[action.chunk].get(action.kind);
}

std::optional<std::pair<int64_t, size_t>> CriticalPaths::findMaker(const Action &action) const {
  const Placement &placement = pipeline.placement;
  bool isForward = action.kind == ActionKind::Forward;
  if (!isForward && !makesInputGradient(action.kind))
    return std::nullopt;
  std::optional<int64_t> chunk = isForward ? placement.getPrevious(action.chunk) : placement.getNext(action.chunk);
  if (!chunk)
    return std::nullopt;
  return std::pair(placement.positionOf[*chunk], (isForward ? forwards : inputGradients)[*chunk][action.microBatch]);
}

StepPath CriticalPaths::follow(int64_t position, size_t index) const {
  StepPath path;
  path.position = position;
  path.forwards.resize(times.size(), 0);
  path.backwards.resize(times.size(), 0);
  std::vector<int64_t> inputParts(times.size(), 0), weightParts(times.size(), 0);
  while (true) {
    const std::vector<Action> &actions = pipeline.positions[position].actions;
    int64_t begin = timing.begins[position][index];
    std::optional<std::pair<int64_t, size_t>> maker = findMaker(actions[index]);
    // An action begins when the one before it on its position has ended, or the maker of what it reads.
    if (maker && getEnd(maker->first, maker->second) == begin)
      std::tie(position, index) = *maker;
    else if (index > 0)
      --index;
    else
      break;
    const Action &before = pipeline.positions[position].actions[index];
    path.forwards[before.chunk] += before.kind == ActionKind::Forward;
    path.backwards[before.chunk] += before.kind == ActionKind::Backward;
    inputParts[before.chunk] += before.kind == ActionKind::InputGradient;
    weightParts[before.chunk] += before.kind == ActionKind::WeightGradient;
  }
  for (size_t chunk = 0; chunk < times.size(); ++chunk)
    path.backwards[chunk] += std::min(inputParts[chunk], weightParts[chunk]);
  return path;
}

StepPath CriticalPaths::findToEnd() const {
  int64_t last = 0;
  auto getLastEnd = [&](int64_t position) { return getEnd(position, timing.begins[position].size() - 1); };
  for (int64_t position = 1; position < pipeline.placement.positions; ++position)
    if (getLastEnd(position) > getLastEnd(last))
      last = position;
  // Each position ends with an update, which takes no time here.
  return follow(last, timing.begins[last].size() - 1);
}

StepPath CriticalPaths::findToLastBackward(int64_t chunk) const {
  int64_t position = pipeline.placement.positionOf[chunk];
  const std::vector<Action> &actions = pipeline.positions[position].actions;
  size_t index = actions.size() - 1;
  while (actions[index].chunk != chunk || !endsBackward(actions[index].kind))
    --index;
  return follow(position, index);
}
