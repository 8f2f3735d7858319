#include "windlass/Schedule/Pipeline.h"

using namespace windlass::schedule;

void windlass::schedule::splitBackwards(Pipeline &pipeline) {
  for (Schedule &schedule : pipeline.positions) {
    std::vector<Action> actions;
    for (Action &action : schedule.actions) {
      bool isWhole = action.kind == ActionKind::Backward;
      if (isWhole)
        action.kind = ActionKind::InputGradient;
      actions.push_back(action);
      if (isWhole) {
        action.kind = ActionKind::WeightGradient;
        actions.push_back(action);
      }
    }
    schedule.actions = std::move(actions);
  }
}
