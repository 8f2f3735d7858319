#include "windlass/Schedule/Pipeline.h"

#include "llvm/ADT/STLExtras.h"

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

bool windlass::schedule::hasSplitBackwards(const Pipeline &pipeline) {
  return llvm::any_of(pipeline.positions, [](const Schedule &schedule) {
    return llvm::any_of(schedule.actions,
                        [](const Action &action) { return action.kind == ActionKind::InputGradient; });
  });
}
