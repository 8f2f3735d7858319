#include "Boxes.h"

#include <cmath>
#include <cstdio>

using namespace windlass::schedule;

llvm::StringRef windlass::schedule::getWord(ActionKind kind) {
  switch (kind) {
  case ActionKind::Forward:
    return "F";
  case ActionKind::Backward:
    return "BW";
  case ActionKind::InputGradient:
    return "B";
  case ActionKind::WeightGradient:
    return "W";
  case ActionKind::Reduce:
  case ActionKind::Update:
  case ActionKind::Send:
  case ActionKind::Receive:
    break;
  }
  return "";
}

std::vector<Box> windlass::schedule::listBoxes(const TimedPipeline &step, int64_t position) {
  const std::vector<int64_t> &positionOf = step.pipeline.placement.positionOf;
  int64_t first = std::find(positionOf.begin(), positionOf.end(), position) - positionOf.begin();
  const std::vector<Action> &actions = step.pipeline.positions[position].actions;
  std::vector<Box> boxes;
  for (size_t index = 0; index < actions.size(); ++index) {
    const Action &action = actions[index];
    if (getWord(action.kind).empty())
      continue;
    int64_t begin = step.timing.begins[position][index];
    int64_t length = step.times.chunks[action.chunk].get(action.kind);
    if (length > 0)
      boxes.push_back({action.kind, action.chunk, action.microBatch, begin, begin + length, action.chunk > first});
  }
  return boxes;
}

std::string windlass::schedule::printTime(double units) {
  char text[32];
  std::snprintf(text, sizeof text, "%.6g", units);
  return text;
}

double windlass::schedule::roundUpStep(double least) {
  double power = std::pow(10, std::floor(std::log10(least)));
  for (double factor : {1.0, 2.0, 5.0})
    if (least <= factor * power)
      return factor * power;
  return 10 * power;
}
