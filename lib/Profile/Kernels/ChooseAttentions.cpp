#include "windlass/Profile/Kernels/ChooseAttentions.h"

#include "windlass/Dialect/Sched/Analysis/Scratch.h"
#include "windlass/Profile/Kernels/CommandKeys.h"

using namespace mlir;
using namespace windlass;

std::vector<rt::attention_choice> windlass::chooseAttentions(sched::ProgramOp program,
                                                             const AttentionChoices *measured) {
  std::vector<rt::attention_choice> choices;
  CommandKeys keys(program);
  program.walk([&](sched::LaunchOp launch) {
    std::optional<rt::attention_shape> shape = sched::getAttentionShape(launch);
    if (!shape || llvm::any_of(choices, [&](const rt::attention_choice &each) { return each.shape == *shape; }))
      return;
    if (measured)
      if (auto found = measured->choices.find(keys.get(launch, /*isLater=*/false).text);
          found != measured->choices.end()) {
        if (found->second.seconds < found->second.ownSeconds)
          choices.push_back({*shape, found->second.workspaceBytes});
        return;
      }
    choices.push_back({*shape, rt::library_workspace_bytes(*shape)});
  });
  return choices;
}
